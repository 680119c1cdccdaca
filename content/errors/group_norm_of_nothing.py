"""`nn.GroupNorm` fails for an empty batch: Reshape, Input shape:{0,3}, requested shape:{0,1,-1}

`torch.onnx.export` forms the groups with a `Reshape` to 0, the number of groups, and -1. In this shape, 0 means the size of the input, and
-1 is computed from the number of elements. An empty input doesn't have elements to compute it from, so ONNX Runtime raises an error. Other
batch sizes are right.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

SAMPLES = [(torch.arange(6.0 * rows).reshape(rows, 6).sin(),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", nn.GroupNorm(2, 6), SAMPLES[0], dynamic_shapes=ROWS), nn.GroupNorm(2, 6), SAMPLES


class Written(nn.GroupNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        groups = x.unflatten(1, (self.num_groups, self.num_channels // self.num_groups))
        deviation = groups - groups.mean(2, keepdim=True)
        variance = (deviation * deviation).mean(2, keepdim=True)
        normalised = deviation / torch.sqrt(variance + self.eps)
        return normalised.flatten(1) * self.weight + self.bias


def written() -> Claim:
    """Write the groups with known sizes. Or don't pass an empty batch."""
    return export("dynamo", Written(2, 6), SAMPLES[0], dynamic_shapes=ROWS), nn.GroupNorm(2, 6), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes the sizes instead of -1."""
    return export("to_onnx", nn.GroupNorm(2, 6), SAMPLES[0], dynamic_shapes=ROWS), nn.GroupNorm(2, 6), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"false\. The input tensor cannot be reshaped to the requested shape\. Input shape:\{0,.*?\}, requested shape:\{0,.*?-1\}",
    breaks=breaks,
    fixes=(Fix("change the model", written), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxruntime#9940",),
    kin=r"running Reshape node|cannot be reshaped to the requested shape",
)
