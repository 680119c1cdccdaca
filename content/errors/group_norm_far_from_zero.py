"""GroupNorm at opset 21 and up: right near 0, and far from it the numbers are noise

From opset 21 on the exporter writes `GroupNormalization`. ONNX Runtime has no kernel for it on a processor and computes the definition: the
variance is `mean(x²) − mean(x)²`. Where the mean is large beside the deviation, the two are nearly equal, and float32 keeps nothing of what
is between them.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

SAMPLES = [(1000 + torch.arange(64.0 * rows).reshape(rows, 64).sin(),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", nn.GroupNorm(2, 64), SAMPLES[0], dynamic_shapes=ROWS, opset_version=21), nn.GroupNorm(2, 64), SAMPLES


def older() -> Claim:
    """Ask for opset 20, where it is an `InstanceNormalization`, for which there is a kernel."""
    return export("dynamo", nn.GroupNorm(2, 64), SAMPLES[0], dynamic_shapes=ROWS, opset_version=20), nn.GroupNorm(2, 64), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` writes an `InstanceNormalization` at every opset."""
    return export("to_onnx", nn.GroupNorm(2, 64), SAMPLES[0], dynamic_shapes=ROWS, opset_version=21), nn.GroupNorm(2, 64), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\[\d, \d+\]: -?[01]\.\d+ where eager has -?[01]\.\d+ \(256 of 256 elements differ\)",
    check="export inputs",
    breaks=breaks,
    op="group_norm",
    fixes=(Fix("change the call", older), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxruntime#24538",),
)
