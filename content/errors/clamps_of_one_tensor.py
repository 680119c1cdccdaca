"""Invalid model. Node input 'mul_min_1' is not a graph input, initializer, or output of a previous node

The exporter writes a `clamp` between two tensors as a minimum and a maximum, and its optimiser makes one `Clip` of both. The bounds are
named after the tensor that is clamped. Where two clamps take the same one, the second pair of bounds replaces the first, and nodes are
left that read what is no longer there. The queries, keys and values of Gemma 4, which clamp their common input, are such a case.
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
    """Pass `optimize=False`: the file keeps a minimum and a maximum."""
    return export("dynamo", Clamped(), SAMPLES[0], dynamic_shapes=MOVING, optimize=False), Clamped(), SAMPLES


def by_numbers() -> Claim:
    """Clamp by Python's numbers, where the bounds are constants."""
    return export("dynamo", ClampedByNumbers(), SAMPLES[0], dynamic_shapes=MOVING), Clamped(), SAMPLES


def ours() -> Claim:
    """`to_onnx` reads the bounds where they are."""
    return export("to_onnx", Clamped(), SAMPLES[0], dynamic_shapes=MOVING), Clamped(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Node input '\w+_(?:min|max)(?:_\d+)?' is not a graph input, initializer, or output of a previous node",
    breaks=breaks,
    fixes=(Fix("change the model", by_numbers), Fix("change the call", not_optimised), Fix("another exporter", ours)),
    threads=("microsoft/onnxscript#2500",),
)
