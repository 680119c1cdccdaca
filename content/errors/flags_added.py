"""Type 'tensor(bool)' of input parameter of operator (Add) is invalid: `+` or `*` of boolean tensors

PyTorch adds and multiplies booleans as logical "or" and "and". ONNX has `Or` and `And` for this; its `Add` and `Mul` accept only numbers.
`torch.onnx.export` writes `Add` and `Mul` anyway, so the model is invalid.
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
    """Use `|` instead of `+`, and `&` instead of `*`. If you need numbers, cast with `.long()` first."""
    return export("dynamo", EitherByOr(), SAMPLES[0], dynamic_shapes=ROWS), Either(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes `Or` for booleans."""
    return export("to_onnx", Either(), SAMPLES[0], dynamic_shapes=ROWS), Either(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Type Error: Type 'tensor\(bool\)' of input parameter \(.*?\) of operator \(\w+\)",
    breaks=breaks,
    fixes=(Fix("change the model", either), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxruntime#13681", "onnx/onnx#4407", "pytorch/pytorch#82870"),
)
