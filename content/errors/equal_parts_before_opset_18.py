"""INVALID_GRAPH: Unrecognized attribute: num_outputs for operator Split, after an export with `opset_version=17` or lower

`torch.onnx.export` writes opset 18 and then converts the model to the version that you request. Since opset 18, a `Split` into equal parts
stores their number in the attribute `num_outputs`. The conversion lowers the opset version but keeps this attribute, which opset 17 doesn't
define. `split(size)` and `chunk` are exported this way if the dimension is static.
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
    """Write the parts as slices if you need opset 17."""
    return export("dynamo", Sliced(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=17), Stacked(), SAMPLES


def opset_18() -> Claim:
    """Use opset 18 or later, or the default. The model is then not converted."""
    return export("dynamo", Stacked(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=18), Stacked(), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`). It writes the requested opset without a conversion."""
    return export("torchscript", Stacked(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=17), Stacked(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"INVALID_GRAPH : This is an invalid model\. In Node, \(\"\w+\", Split, \"\", -1\)",
    breaks=breaks,
    fixes=(Fix("change the model", sliced), Fix("change the call", opset_18), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#161056", "onnx/onnx#6811", "onnx/onnx#5222"),
)
