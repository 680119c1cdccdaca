"""The result is too narrow: `copy_` of a smaller tensor is not broadcast to the size of its target

`a.copy_(b)` repeats b along axes of size 1, as every operator does. The exporter translates it as b alone, cast to the type of a: correct
only where both have one shape already. `a[:] = b` is another operator, which is translated with the repetition.
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
    """Expand what is copied first."""
    return export("dynamo", Expanded(), SAMPLES[0], dynamic_shapes=ROWS), Copied(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` expands it itself."""
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
