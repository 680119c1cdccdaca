"""SymbolicValueError: Expected node type 'onnx::Constant' for argument 'dim', got 'prim::Param': an int argument of `forward`

The legacy exporter (`dynamo=False`) turns each argument into an input of the ONNX model, including numbers. But a dimension, a number of
groups or a window size has to be known at export time. ONNX stores it as an attribute, and an input can't set an attribute.
"""

from functools import partial

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Summed(nn.Module):
    def forward(self, x: torch.Tensor, axis: int) -> torch.Tensor:
        return x.cumsum(axis)


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3), 1) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"}, None)


def breaks() -> Claim:
    return export("torchscript", Summed(), SAMPLES[0], dynamic_shapes=ROWS), Summed(), SAMPLES


class Bound(nn.Module):
    def __init__(self, model: nn.Module, **numbers: int) -> None:
        super().__init__()
        self.model = model
        self.called = partial(model, **numbers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.called(x)


def bound() -> Claim:
    """Set the number in a wrapper module. Export one model for each number that you need."""
    model, samples = Bound(Summed(), axis=1), [(x,) for x, _ in SAMPLES]
    return export("torchscript", model, samples[0], dynamic_shapes=ROWS[:1]), model, samples


def dynamo() -> Claim:
    """Use `torch.onnx.export` with its default, `dynamo=True`. It treats the number as a constant. The inputs of the ONNX model are the
    tensors, and the model is right for this number only.
    """
    return export("dynamo", Summed(), SAMPLES[0], dynamic_shapes=ROWS), Summed(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"Expected node type 'onnx::Constant' for argument '\w+' of node '\w+', got 'prim::Param'",
    breaks=breaks,
    fixes=(Fix("change the model", bound), Fix("another exporter", dynamo)),
    threads=("NVIDIA/Model-Optimizer#225",),
)
