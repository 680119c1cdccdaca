"""Unexpected input data type. Actual: (tensor(double)), expected: (tensor(float))

An ONNX file declares the type of each input, and ONNX Runtime converts nothing. NumPy makes float64 of every Python number, and int64 of
integers where your file may say int32: so what you feed is rarely of the right type by itself.
"""

import numpy
import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

SAMPLES = [(torch.ones(rows, 3),) for rows in (2, 4, 1, 0)]
ROWS = ({0: "rows"},)


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def breaks() -> Claim:
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": numpy.array([[0.5, 1.5, 2.5]])})
    return exported, Doubled(), SAMPLES


class FromDouble(Doubled):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.float()).double()


def converting() -> Claim:
    """Have the model convert: export it with an example of the type that will come. Answers are as exact as float32 is."""
    doubles = [(x.double(),) for (x,) in SAMPLES]
    exported = export("dynamo", FromDouble(), doubles[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": numpy.array([[0.5, 1.5, 2.5]])})
    return exported, FromDouble(), doubles


def cast() -> Claim:
    """Or say the type where the array is made, or cast with `.astype(numpy.float32)`. `session.get_inputs()[0].type` tells which one."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": numpy.array([[0.5, 1.5, 2.5]], dtype=numpy.float32)})
    return exported, Doubled(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"Unexpected input data type\. Actual: \(.*?\) , expected: \(",
    breaks=breaks,
    fixes=(Fix("change the model", converting), Fix("change the call", cast)),
    threads=("microsoft/onnxruntime#7340", "microsoft/onnxruntime#4787", "onnx/keras-onnx#323"),
)
