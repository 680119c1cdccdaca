"""We found a fake tensor in the exported program constant's list: `forward` writes through `x.data`

`.data` is a second reference to a tensor's memory, which autograd doesn't track. The capture records operators, but accessing `.data` isn't
one. The reference looks like a new tensor without a source, so torch.export treats it as a constant of the model. This constant doesn't
have values. With `strict=True`, and with the legacy exporter (`dynamo=False`), the export succeeds, but the write is lost.
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
    """Write to the tensor itself, under `torch.no_grad()`. This has the same effect as writing to `.data`: autograd doesn't track it."""
    return export("torch.export", DoubledOpenly(), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


class DoubledAnew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1


def without_writing() -> Claim:
    """Compute a new tensor. A model for inference doesn't need to hide a write from autograd."""
    return export("torch.export", DoubledAnew(), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"We found a fake tensor in the exported program constant's list",
    op=r"\.data\b",
    breaks=breaks,
    fixes=(Fix("change the model", no_grad), Fix("change the model", without_writing)),
    threads=("pytorch/pytorch#167007", "pytorch/pytorch#161589"),
)
