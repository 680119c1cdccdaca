"""Failed to convert 'dynamic_axes' to 'dynamic_shapes': a number or `None` among the arguments of `torch.onnx.export`

`dynamic_axes` belongs to the legacy exporter and refers to inputs of the ONNX model by name. With `dynamo=True`, `torch.onnx.export`
converts it to `dynamic_shapes` by matching the names with the arguments in order. A number or `None` among the arguments isn't an input of
the ONNX model, so it doesn't have a name and the count is off by one. A name that is in neither `input_names` nor `output_names` causes the
same error.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Mixed(nn.Module):
    def forward(self, x: torch.Tensor, share: float, y: torch.Tensor) -> torch.Tensor:
        return x * share + y


SAMPLES = [(torch.ones(rows, 3), 0.25, torch.full((rows, 3), 5.0)) for rows in (4, 7, 1)]
NAMES = ["x", "y"]
AXES = {"x": {0: "rows"}, "y": {0: "rows"}}


def breaks() -> Claim:
    return torch.onnx.export(Mixed(), SAMPLES[0], dynamo=True, verbose=False, input_names=NAMES, dynamic_axes=AXES), Mixed(), SAMPLES


def dynamic_shapes() -> Claim:
    """Use `dynamic_shapes` instead of `dynamic_axes`. It has one entry for each argument, and `None` for an argument that isn't a tensor.
    The number becomes a constant in the ONNX model.
    """
    return export("dynamo", Mixed(), SAMPLES[0], dynamic_shapes=({0: "rows"}, None, {0: "rows"})), Mixed(), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`), for which `dynamic_axes` was made. It also makes the number an input."""
    return export("torchscript", Mixed(), SAMPLES[0], dynamic_shapes=({0: "rows"}, None, {0: "rows"})), Mixed(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Failed to convert 'dynamic_axes' to 'dynamic_shapes'",
    breaks=breaks,
    fixes=(Fix("change the call", dynamic_shapes), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#150940", "pytorch/pytorch#139320", "pytorch/pytorch#140748"),
)
