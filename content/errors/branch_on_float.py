"""Could not guard on data-dependent expression zuf0 > 0.0: an `if` on a float from `tensor.item()`

`x.max().item()` doesn't have a value during the capture. The graph represents it by the symbol `zuf0`, an unknown float, so a Python `if`
can't be decided. `float(x.max())` needs the value even without an `if`.

Often you don't need `item()`: a 0-dimensional tensor supports the same arithmetic.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class ScaledDown(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest = x.abs().max().item()
        return x if largest < 1 else x / largest


SAMPLES = [(torch.linspace(-3, 3, 12).reshape(4, 3),), (torch.linspace(-0.5, 0.9, 21).reshape(7, 3),), (torch.ones(1, 3) * 2,)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", ScaledDown(), SAMPLES[0], dynamic_shapes=ROWS), ScaledDown(), SAMPLES


class ScaledByClamp(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.abs().max().clamp(min=1)


def clamp() -> Claim:
    """Use a tensor operation without a branch: `clamp`, `minimum`, `maximum` or `relu`."""
    return export("dynamo", ScaledByClamp(), SAMPLES[0], dynamic_shapes=ROWS), ScaledDown(), SAMPLES


class ScaledByWhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest = x.abs().max()
        return torch.where(largest < 1, x, x / largest)


def where() -> Claim:
    """Use `torch.where`. It computes both branches and selects one, and it works for any condition."""
    return export("dynamo", ScaledByWhere(), SAMPLES[0], dynamic_shapes=ROWS), ScaledDown(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It runs the model once for each branch and writes the `if` as an ONNX `If`."""
    return export("to_onnx", ScaledDown(), SAMPLES[0], dynamic_shapes=ROWS), ScaledDown(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Could not guard on data-dependent expression [^\n]*?zuf\d+[^\n]*? \(unhinted",
    op=r"\bif\b|(?:^|[^.\w])(?:min|max)\(",
    breaks=breaks,
    fixes=(Fix("change the model", clamp), Fix("change the model", where), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#153411",),
)
