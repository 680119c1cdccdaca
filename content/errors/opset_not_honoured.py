"""opset_version=13 is ignored: the exported model has opset 18

`torch.onnx.export` first writes opset 18, and then converts the model to `opset_version`. If the conversion fails, it logs a line and the
model stays at opset 18. This happens if the older opset doesn't have an operator: `LayerNormalization` was added in 17. A runtime that
needs the older opset then can't load the model.
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
    """Pass an `opset_version` that has the operators of the model. Check `.model.opset_imports` after the export."""
    return export("dynamo", nn.LayerNorm(3), SAMPLES[0], dynamic_shapes=ROWS, opset_version=17), nn.LayerNorm(3), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`). It writes old opsets directly, with the operators that they have."""
    return export("torchscript", nn.LayerNorm(3), SAMPLES[0], dynamic_shapes=ROWS, opset_version=13), nn.LayerNorm(3), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"opset: asked for \d+, got \d+",
    check="opset",
    breaks=breaks,
    fixes=(Fix("change the call", later), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#161056", "onnx/onnx#6811"),
)
