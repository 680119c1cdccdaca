"""Unexpected input data type. Actual: (tensor(double)), expected: (tensor(float)): a float64 NumPy array as input

An ONNX model declares the dtype of each input, and ONNX Runtime doesn't convert inputs. NumPy creates float64 arrays from Python floats,
and int64 arrays from integers. The model may need float32 or int32.
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
    """Convert the input in the model. Export with an example of the dtype that you will pass. The results have float32 precision."""
    doubles = [(x.double(),) for (x,) in SAMPLES]
    exported = export("dynamo", FromDouble(), doubles[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": numpy.array([[0.5, 1.5, 2.5]])})
    return exported, FromDouble(), doubles


def cast() -> Claim:
    """Create the array with the right dtype, or cast it with `.astype(numpy.float32)`. `session.get_inputs()[0].type` is its dtype."""
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
