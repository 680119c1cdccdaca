"""The exported model computes the `except` branch: an `if` on a tensor's value inside `try`

The capture doesn't have values, so the `if` raises an exception. Your `except` clause catches it, as it would catch an exception of the
model. The capture then records the code in `except`, and you don't see the exception.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Cautious(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            scale = 2 if x.sum() > 0 else 3
        except RuntimeError:
            scale = 5
        return x * scale


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Cautious(), SAMPLES[0], dynamic_shapes=ROWS), Cautious(), SAMPLES


class ByWhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.where(x.sum() > 0, 2, 3)


def where() -> Claim:
    """Move the condition out of the `try`, and select with `torch.where`."""
    return export("dynamo", ByWhere(), SAMPLES[0], dynamic_shapes=ROWS), Cautious(), SAMPLES


class ByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))


def cond() -> Claim:
    """Use `torch.cond`. It exports both branches as an ONNX `If`. Prefer it if a branch is expensive."""
    return export("dynamo", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), Cautious(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+, \d+\]: \S+ where eager has \S+ \((\d+) of \1 elements differ\)",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", where), Fix("change the model", cond)),
    threads=("pytorch/pytorch#93579",),
)
