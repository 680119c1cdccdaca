"""dynamo=True: what the model adds in place after `nn.Dropout`, as `y = drop(h); y += x`, is missing from `h` in the file

Out of training, eager's dropout returns the tensor that it was given, not a copy: `y` is `h` under another name, and `y += x` changes both.
To the exporter a dropout makes a new tensor. So the file changes `y`, and whatever reads `h` later, a residual or a second output, gets the
old numbers.
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
    """Compute a new tensor, `y = drop(h) + x`, and return it where the changed one was meant."""
    return export("dynamo", seeded(Sums), SAMPLES[0], dynamic_shapes=ROWS), seeded(Block), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` takes a dropout that drops nothing for what eager takes it for: its input."""
    return export("to_onnx", seeded(Block), SAMPLES[0], dynamic_shapes=ROWS), seeded(Block), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\[1\]\[[\d, ]+\]: \S+ where eager has \S+ \(\d+ of \d+ elements differ\)\nunseen size: output\[1\]",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", summed), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#115249", "pytorch/pytorch#185981"),
)
