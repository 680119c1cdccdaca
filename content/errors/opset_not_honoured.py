"""opset_version=13 was asked for, and the file has opset 18

The exporter writes opset 18 at first, and has a converter bring it to what you asked for. Where the converter cannot, for one because an
operator did not exist yet, a line is logged and the file stays at 18: `LayerNormalization` came with 17. What has to read it then refuses
it.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

SAMPLES = [(torch.arange(3.0 * rows).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", nn.LayerNorm(3), SAMPLES[0], dynamic_shapes=ROWS, opset_version=13), nn.LayerNorm(3), SAMPLES


def later() -> Claim:
    """Ask for an opset that has the operators of the model, and read `.model.opset_imports` afterwards."""
    return export("dynamo", nn.LayerNorm(3), SAMPLES[0], dynamic_shapes=ROWS, opset_version=17), nn.LayerNorm(3), SAMPLES


def torchscript() -> Claim:
    """The older exporter, `dynamo=False`, writes old opsets itself, with what they have."""
    return export("torchscript", nn.LayerNorm(3), SAMPLES[0], dynamic_shapes=ROWS, opset_version=13), nn.LayerNorm(3), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"opset: asked for \d+, got \d+",
    check="opset",
    breaks=breaks,
    fixes=(Fix("change the call", later), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#161056", "onnx/onnx#6811"),
)
