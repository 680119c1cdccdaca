"""In-place write after `nn.Dropout` is lost with `torch.onnx.export`: `y = drop(h); y += x` doesn't change `h`

In evaluation mode, eager dropout returns its input and not a copy. `y` and `h` are the same tensor, so `y += x` changes both. In the graph
of `torch.onnx.export`, dropout returns a new tensor. The exported model changes `y`, but not `h`. If a residual connection or a second
output uses `h` later, it gets the old values.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.drop = nn.Linear(3, 3), nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.project(x)
        y = self.drop(h)
        y += x
        return y, h


class Sums(Block):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.drop(self.project(x)) + x
        return y, y


SAMPLES = [(torch.arange(3.0 * rows).reshape(rows, 3) - 3.5,) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def seeded(block: type[Block]) -> Block:
    torch.manual_seed(0)
    return block().eval()


def breaks() -> Claim:
    return export("dynamo", seeded(Block), SAMPLES[0], dynamic_shapes=ROWS), seeded(Block), SAMPLES


def summed() -> Claim:
    """Compute a new tensor: `y = drop(h) + x`. Return it instead of the tensor that was changed in place."""
    return export("dynamo", seeded(Sums), SAMPLES[0], dynamic_shapes=ROWS), seeded(Block), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It treats dropout in evaluation mode as its input, as eager does."""
    return export("to_onnx", seeded(Block), SAMPLES[0], dynamic_shapes=ROWS), seeded(Block), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\[1\]\[[\d, ]+\]: \S+ where eager has \S+ \(\d+ of \d+ elements differ\)\nunseen size: output\[1\]",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", summed), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#115249", "pytorch/pytorch#185981"),
)
