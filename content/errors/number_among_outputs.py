"""AttributeError: 'int' object has no attribute 'name': `forward` returns a number among its tensors

A number that `forward` returns isn't a tensor. The captured graph has a constant in its list of outputs. `torch.onnx.export` expects a node
with a name for each output, except `None`. A float, a bool and the size of a static dimension fail in the same way.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Scored(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x.softmax(-1), x.shape[1]


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Scored(), SAMPLES[0], dynamic_shapes=ROWS), Scored(), SAMPLES


class Tensors(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)[0]


def tensors() -> Claim:
    """Return only the tensors from a wrapper module. The number is the same for each call, so the exported model doesn't have to compute
    it.
    """
    return export("dynamo", Tensors(Scored()), SAMPLES[0], dynamic_shapes=ROWS), Tensors(Scored()), SAMPLES


def moving() -> Claim:
    """Mark the dimension as dynamic if the number is its size. The exported model then returns the size as an integer tensor."""
    wider = [*SAMPLES, (torch.ones(2, 5),)]
    return export("dynamo", Scored(), SAMPLES[0], dynamic_shapes=({0: "rows", 1: "width"},)), Scored(), wider


def to_onnx() -> Claim:
    """Use `to_onnx`. It doesn't export the number, and puts it back at its position in the output."""
    return export("to_onnx", Scored(), SAMPLES[0], dynamic_shapes=ROWS), Scored(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"'(int|float|bool)' object has no attribute 'name'",
    breaks=breaks,
    fixes=(Fix("change the model", tensors), Fix("change the call", moving), Fix("another exporter", to_onnx)),
)
