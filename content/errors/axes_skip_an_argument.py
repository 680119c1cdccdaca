"""Failed to convert 'dynamic_axes' to 'dynamic_shapes': treespec.unflatten(leaves): `leaves` has length 2 but the spec … holds 3 items

`dynamic_axes` belongs to the older exporter, and names inputs of the file. `dynamo=True` translates it by counting: the names stand
for all arguments in turn. A number or a `None` among the arguments is no input of the file, so it has no name, and the count is off
by one. A name that is in neither `input_names` nor `output_names` does it too.
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
    """Write `dynamic_shapes`, one entry for each argument, `None` for what is no tensor. The number is a constant of the file."""
    return export("dynamo", Mixed(), SAMPLES[0], dynamic_shapes=({0: "rows"}, None, {0: "rows"})), Mixed(), SAMPLES


def torchscript() -> Claim:
    """The older exporter, `dynamo=False`, is what `dynamic_axes` was made for. It makes an input of the number, too."""
    return export("torchscript", Mixed(), SAMPLES[0], dynamic_shapes=({0: "rows"}, None, {0: "rows"})), Mixed(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Failed to convert 'dynamic_axes' to 'dynamic_shapes'",
    breaks=breaks,
    fixes=(Fix("change the call", dynamic_shapes), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#150940", "pytorch/pytorch#139320", "pytorch/pytorch#140748"),
)
