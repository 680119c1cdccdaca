"""The result keeps the example's length at every size: `int(x.shape[0] * 0.5)` became a constant

A size that moves is a symbol, and `// 2` of it is another. `int` of a product with a float is asked for as a number, so the capture takes
that of the example. torch.export notes down for which sizes the number is right, and refuses others when it runs; the ONNX exporter drops
the note. The input still moves, the length of the result does not.

The same happens where an operator takes a plain number: `F.avg_pool2d(x, x.shape[2] // 2)`, `x.chunk(n // 4)`, `scale_factor=h / 4`,
`eps=1 / n`. Write parts as slices there, and give `size=` for a scale. `to_onnx` computes the scale, and refuses the others with their
line.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class FirstHalf(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[: int(x.shape[0] * 0.5)] * 2


SAMPLES = [(torch.arange(1.0, rows + 1),) for rows in (6, 9, 12, 2)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", FirstHalf(), SAMPLES[0], dynamic_shapes=ROWS), FirstHalf(), SAMPLES


class InIntegers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[: x.shape[0] // 2] * 2


def integers() -> Claim:
    """Stay with integers: `// 2` for `* 0.5`, `* 3 // 4` for `* 0.75`."""
    return export("dynamo", InIntegers(), SAMPLES[0], dynamic_shapes=ROWS), FirstHalf(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` runs the model at several sizes, sees how long the result is at each, and computes the length."""
    return export("to_onnx", FirstHalf(), SAMPLES[0], dynamic_shapes=ROWS), FirstHalf(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*: shape \[[1-9][\d, ]*\] where eager has \[[\d, ]+\]",
    check="unseen size",
    breaks=breaks,
    fixes=(Fix("change the model", integers), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#166110",),
)
