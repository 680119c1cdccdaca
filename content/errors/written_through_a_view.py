"""In-place write through a view is lost with `dynamo=False`: `x.t()[1] = 5` or `chunk(…)[0].relu_()`

Tracing records a view as an operator that returns a new tensor. It doesn't record that the view shares memory with another tensor. In the
exported model, the write changes the view, but not the original tensor.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class HalfActivated(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = x.clone()
        first, _ = both.chunk(2, dim=1)
        first.sigmoid_()
        return both


SAMPLES = [(torch.arange(6.0 * rows).reshape(rows, 6) - 3.5,) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torchscript", HalfActivated(), SAMPLES[0], dynamic_shapes=ROWS), HalfActivated(), SAMPLES


class Joined(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=1)
        return torch.cat([first.sigmoid(), second], dim=1)


def joined() -> Claim:
    """Compute new parts and concatenate them, instead of writing into a part."""
    return export("torchscript", Joined(), SAMPLES[0], dynamic_shapes=ROWS), HalfActivated(), SAMPLES


def dynamo() -> Claim:
    """Use `torch.onnx.export` with its default, `dynamo=True`. It replaces in-place writes, including those through views, before the
    translation.
    """
    return export("dynamo", HalfActivated(), SAMPLES[0], dynamic_shapes=ROWS), HalfActivated(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+, \d+\]: \S+ where eager has \S+ \((?!(\d+) of \1 )\d+ of \d+ elements differ\)",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", joined), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#114406",),
    kin=r"entirely functional graph",
    advice="compute a new tensor (torch.where, a sum) instead of writing to a view",
)
