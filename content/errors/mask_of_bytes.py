"""tensors used as indices must be long, int, byte or bool tensors: `x[mask]` with a uint8 mask

PyTorch used `uint8` for masks before it had `bool`, and it still accepts them with a warning. torch.export has its own rules for the dtypes
of an index. They allow `int8`, but not `uint8`.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Kept(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x[mask] * 2


def inputs(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(-1, 1, rows * 3).reshape(rows, 3), (torch.arange(rows) % 3 > 0).to(torch.uint8)


SAMPLES = [inputs(4), inputs(7), inputs(1)]
ROWS = ({0: "rows"}, {0: "rows"})


def breaks() -> Claim:
    return export("dynamo", Kept(), SAMPLES[0], dynamic_shapes=ROWS), Kept(), SAMPLES


class KeptByBool(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x[mask.bool()] * 2


def as_bool() -> Claim:
    """Index with `mask.bool()`. Callers can still pass `uint8` masks."""
    return export("dynamo", KeptByBool(), SAMPLES[0], dynamic_shapes=ROWS), Kept(), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`). It runs the model with real tensors, and accepts `uint8` masks."""
    return export("torchscript", Kept(), SAMPLES[0], dynamic_shapes=ROWS), Kept(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"tensors used as indices must be long, int, byte or bool tensors",
    breaks=breaks,
    fixes=(Fix("change the model", as_bool), Fix("another exporter", torchscript)),
)
