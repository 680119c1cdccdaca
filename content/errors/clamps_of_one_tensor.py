"""Invalid model. Node input 'mul_min_1' is not a graph input, initializer, or output of a previous node: two clamps of a tensor

`torch.onnx.export` writes a `clamp` with tensors as bounds as a minimum and a maximum. Its optimiser fuses them into one `Clip` and names
the bounds after the clamped tensor. If two clamps have the same input, the second pair of bounds replaces the first, and some nodes read
values that no longer exist. An example is Gemma 4, where the queries, keys and values clamp their common input.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Clamped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name, value in {"a": -1.0, "b": 1.0, "c": -2.0, "d": 2.0}.items():
            self.register_buffer(name, torch.tensor(value))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y.clamp(self.a, self.b) + y.clamp(self.c, self.d)


class ClampedByNumbers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y.clamp(-1.0, 1.0) + y.clamp(-2.0, 2.0)


SAMPLES = [(torch.linspace(-3, 3, rows * 4).reshape(rows, 4),) for rows in (2, 5, 1)]
MOVING = ({0: "batch"},)


def breaks() -> Claim:
    return export("dynamo", Clamped(), SAMPLES[0], dynamic_shapes=MOVING), Clamped(), SAMPLES


def not_optimised() -> Claim:
    """Pass `optimize=False`. The model keeps the minimum and the maximum."""
    return export("dynamo", Clamped(), SAMPLES[0], dynamic_shapes=MOVING, optimize=False), Clamped(), SAMPLES


def by_numbers() -> Claim:
    """Clamp with Python numbers if the bounds are constants."""
    return export("dynamo", ClampedByNumbers(), SAMPLES[0], dynamic_shapes=MOVING), Clamped(), SAMPLES


def ours() -> Claim:
    """Use `to_onnx`. It isn't affected."""
    return export("to_onnx", Clamped(), SAMPLES[0], dynamic_shapes=MOVING), Clamped(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Node input '\w+_(?:min|max)(?:_\d+)?' is not a graph input, initializer, or output of a previous node",
    breaks=breaks,
    fixes=(Fix("change the model", by_numbers), Fix("change the call", not_optimised), Fix("another exporter", ours)),
    threads=("microsoft/onnxscript#2500",),
)
