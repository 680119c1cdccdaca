"""Type 'tensor(bool)' of input parameter of operator (Add) is invalid: arithmetic with booleans

PyTorch adds and multiplies booleans, as "or" and "and". ONNX has `Or` and `And` for that, and its `Add` and `Mul` take numbers only. The
exporter writes them all the same, and the file is invalid.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Either(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b


SAMPLES = [(torch.arange(rows) % 2 == 0, torch.arange(rows) % 3 == 0) for rows in (6, 9, 1, 0)]
ROWS = ({0: "rows"}, {0: "rows"})


def breaks() -> Claim:
    return export("dynamo", Either(), SAMPLES[0], dynamic_shapes=ROWS), Either(), SAMPLES


class EitherByOr(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a | b


def either() -> Claim:
    """Say what is meant: `|` for `+`, `&` for `*`. Where numbers are meant, cast with `.long()` first."""
    return export("dynamo", EitherByOr(), SAMPLES[0], dynamic_shapes=ROWS), Either(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` looks at the types and writes `Or`."""
    return export("to_onnx", Either(), SAMPLES[0], dynamic_shapes=ROWS), Either(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Type Error: Type 'tensor\(bool\)' of input parameter \(.*?\) of operator \(\w+\)",
    breaks=breaks,
    fixes=(Fix("change the model", either), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxruntime#13681", "onnx/onnx#4407", "pytorch/pytorch#82870"),
)
