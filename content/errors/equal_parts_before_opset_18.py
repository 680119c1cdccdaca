"""INVALID_GRAPH: Unrecognized attribute: num_outputs for operator Split, after an export with `opset_version=17` or lower

The exporter writes opset 18 and then has the file converted to the version that you asked for. Since opset 18 a `Split` into equal parts
says how many there are in the attribute `num_outputs`. The conversion lowers the version and leaves the attribute, which no runtime knows
in 17. `split(size)` and `chunk` are written in this way, where the axis has a fixed size.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Stacked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(x.split(1, 1))


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Stacked(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=17), Stacked(), SAMPLES


class Sliced(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[:, i : i + 1] for i in range(x.shape[1])])


def sliced() -> Claim:
    """Where it has to be 17, write the parts as slices."""
    return export("dynamo", Sliced(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=17), Stacked(), SAMPLES


def opset_18() -> Claim:
    """Ask for 18 or more, or for nothing: then nothing is converted."""
    return export("dynamo", Stacked(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=18), Stacked(), SAMPLES


def torchscript() -> Claim:
    """The older exporter writes the opset that you ask for, without a conversion."""
    return export("torchscript", Stacked(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=17), Stacked(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"INVALID_GRAPH : This is an invalid model\. In Node, \(\"\w+\", Split, \"\", -1\)",
    breaks=breaks,
    fixes=(Fix("change the model", sliced), Fix("change the call", opset_18), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#161056", "onnx/onnx#6811", "onnx/onnx#5222"),
)
