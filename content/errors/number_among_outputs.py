"""AttributeError: 'int' object has no attribute 'name': the model returns a number among its tensors

A number that `forward` returns is no tensor: in the captured graph it stands in the list of outputs as it is. The official exporter takes
every output for a node that has a name, except `None`. A float or a bool fails in the same way, and so does the size of an axis that is
fixed.
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
    """Export a wrapper that returns the tensors only. The number is the same for every call: you know it without the file."""
    return export("dynamo", Tensors(Scored()), SAMPLES[0], dynamic_shapes=ROWS), Tensors(Scored()), SAMPLES


def moving() -> Claim:
    """A size that is to be a result has to move: name its axis. The file then returns it as a tensor of one integer."""
    wider = [*SAMPLES, (torch.ones(2, 5),)]
    return export("dynamo", Scored(), SAMPLES[0], dynamic_shapes=({0: "rows", 1: "width"},)), Scored(), wider


def to_onnx() -> Claim:
    """`to_onnx` keeps the number out of the file, and gives it back in its place."""
    return export("to_onnx", Scored(), SAMPLES[0], dynamic_shapes=ROWS), Scored(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"'(int|float|bool)' object has no attribute 'name'",
    breaks=breaks,
    fixes=(Fix("change the model", tensors), Fix("change the call", moving), Fix("another exporter", to_onnx)),
)
