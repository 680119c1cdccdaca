"""GroupNorm fails for an empty batch: Reshape, Input shape:{0,3}, requested shape:{0,1,-1}

The exporter writes the groups as a `Reshape` to 0, the number of groups, and -1. ONNX reads 0 as "as it was", and -1 as "what is left": of
an input without elements nothing says how much that is. ONNX Runtime refuses it; every other size is right.
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
    """Write the groups out with sizes that are known. Or send no empty batch."""
    return export("dynamo", Written(2, 6), SAMPLES[0], dynamic_shapes=ROWS), nn.GroupNorm(2, 6), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` writes the sizes."""
    return export("to_onnx", nn.GroupNorm(2, 6), SAMPLES[0], dynamic_shapes=ROWS), nn.GroupNorm(2, 6), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"false\. The input tensor cannot be reshaped to the requested shape\. Input shape:\{0,.*?\}, requested shape:\{0,.*?-1\}",
    breaks=breaks,
    fixes=(Fix("change the model", written), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxruntime#9940",),
)
