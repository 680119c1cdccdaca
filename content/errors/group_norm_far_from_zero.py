"""`nn.GroupNorm` at opset 21 and later: wrong values if the mean of the input is far from 0

From opset 21 on, `torch.onnx.export` writes `GroupNormalization`. ONNX Runtime doesn't have a CPU kernel for it and computes its
definition, where the variance is `mean(x²) − mean(x)²`. If the mean is large compared with the deviation, these two numbers are nearly
equal, and float32 loses their difference. The result is right if the mean is near 0.
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
    """Pass `opset_version=20`. `nn.GroupNorm` is then exported as `InstanceNormalization`, for which ONNX Runtime has a kernel."""
    return export("dynamo", nn.GroupNorm(2, 64), SAMPLES[0], dynamic_shapes=ROWS, opset_version=20), nn.GroupNorm(2, 64), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes `InstanceNormalization` at every opset."""
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
