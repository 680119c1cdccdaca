"""The output has the example's length at every size: `int(x.shape[0] * 0.5)` became a constant

A dynamic size is a symbol, and so is `size // 2`. But `int` of a float product needs a Python number, so the capture uses that of the
example. torch.export records the sizes for which the number is right, and its program refuses others at run time. `torch.onnx.export` drops
this guard. The input is still dynamic, but the length of the output isn't.

The same happens if an operator needs a Python number: `F.avg_pool2d(x, x.shape[2] // 2)`, `x.chunk(n // 4)`, `scale_factor=h / 4`, `eps=1 /
n`. Write such parts as slices, and pass `size=` instead of a scale. `to_onnx` can compute the scale; for the others it raises an error that
names the line.
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
    """Use integer arithmetic. Write `// 2` for `* 0.5`, and `* 3 // 4` for `* 0.75`."""
    return export("dynamo", InIntegers(), SAMPLES[0], dynamic_shapes=ROWS), FirstHalf(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It runs the model at several sizes, compares the output lengths, and computes the length from the input size."""
    return export("to_onnx", FirstHalf(), SAMPLES[0], dynamic_shapes=ROWS), FirstHalf(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*: shape \[[1-9][\d, ]*\] where eager has \[[\d, ]+\]",
    check="unseen size",
    breaks=breaks,
    fixes=(Fix("change the model", integers), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#166110",),
)
