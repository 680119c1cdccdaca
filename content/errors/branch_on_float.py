"""Could not guard on data-dependent expression zuf0 > 0.0: an `if` on a float taken from a tensor by `item()`

`x.max().item()` has no value during the capture. It stands in the graph as `zuf0`, some float, and no Python `if` can be decided by it.
`float(x.max())` asks for the number even without an `if`.
Often `item()` is not needed at all: a tensor without axes does everything that the number does.
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
    """Say it without a branch, on the tensor: `clamp`, `minimum`, `maximum`, `relu`."""
    return export("dynamo", ScaledByClamp(), SAMPLES[0], dynamic_shapes=ROWS), ScaledDown(), SAMPLES


class ScaledByWhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest = x.abs().max()
        return torch.where(largest < 1, x, x / largest)


def where() -> Claim:
    """`torch.where` computes both branches and picks. It fits any test."""
    return export("dynamo", ScaledByWhere(), SAMPLES[0], dynamic_shapes=ROWS), ScaledDown(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` runs the model once for each side, and writes the `if` as an `If`."""
    return export("to_onnx", ScaledDown(), SAMPLES[0], dynamic_shapes=ROWS), ScaledDown(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Could not guard on data-dependent expression [^\n]*?zuf\d+[^\n]*? \(unhinted",
    op=r"\bif\b|(?:^|[^.\w])(?:min|max)\(",
    breaks=breaks,
    fixes=(Fix("change the model", clamp), Fix("change the model", where), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#153411",),
)
