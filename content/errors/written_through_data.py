"""We found a fake tensor in the exported program constant's list: `forward` writes through `x.data`

`.data` is a second handle on the memory of a tensor, made for writing behind the back of autograd. The capture watches operators, and the
step from a tensor to its `.data` is none. The handle looks like a tensor that came out of nowhere, so it is taken for a constant of the
model, and one without values. With `strict=True`, and in the older exporter, the export succeeds and the write is lost.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = x.clone()
        result.data.mul_(2)
        return result + 1


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torch.export", Doubled(), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


class DoubledOpenly(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = x.clone()
        with torch.no_grad():
            result.mul_(2)
        return result + 1


def no_grad() -> Claim:
    """Write to the tensor itself, under `torch.no_grad()` where autograd must not see it: that is what `.data` stood for."""
    return export("torch.export", DoubledOpenly(), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


class DoubledAnew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1


def without_writing() -> Claim:
    """In a model for inference nothing has to be hidden: compute a new tensor."""
    return export("torch.export", DoubledAnew(), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"We found a fake tensor in the exported program constant's list",
    op=r"\.data\b",
    breaks=breaks,
    fixes=(Fix("change the model", no_grad), Fix("change the model", without_writing)),
    threads=("pytorch/pytorch#167007", "pytorch/pytorch#161589"),
)
