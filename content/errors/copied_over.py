"""The output has the wrong shape: `copy_` doesn't broadcast the smaller tensor to the size of its target

`a.copy_(b)` broadcasts b along dimensions of size 1, like other operators. `torch.onnx.export` translates it as b cast to the dtype of a,
which is right only if both have the same shape. `a[:] = b` is a different operator, and its translation broadcasts.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Copied(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.zeros(x.shape[0], 3)
        return wide.copy_(x)


SAMPLES = [(torch.arange(1.0, rows + 1)[:, None],) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Copied(), SAMPLES[0], dynamic_shapes=ROWS), Copied(), SAMPLES


class Expanded(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.zeros(x.shape[0], 3)
        return wide.copy_(x.expand_as(wide))


def expanded() -> Claim:
    """Expand the source before you copy it."""
    return export("dynamo", Expanded(), SAMPLES[0], dynamic_shapes=ROWS), Copied(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It expands the source."""
    return export("to_onnx", Copied(), SAMPLES[0], dynamic_shapes=ROWS), Copied(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*: shape \[[\d, ]*\] where eager has \[[\d, ]*\]",
    check="export inputs",
    breaks=breaks,
    op="copy",
    fixes=(Fix("change the model", expanded), Fix("another exporter", to_onnx)),
    threads=(),
)
