"""Wrong shape or values at another size: `adaptive_avg_pool1d` and `adaptive_avg_pool2d` over a dynamic dimension

`torch.onnx.export` decomposes the pool before it translates it, and the decomposition specialises the size. If the size is a multiple of
the output size, the result is a pool with a fixed window. For example, 6 columns in 3 parts become windows of 2, so 9 columns give 4
outputs instead of 3. Other sizes become a table of constant positions. Before this step, the program from `torch.export` is still dynamic.
`adaptive_avg_pool2d(x, 1)` is exported as a mean, which is right.
"""

import torch
from torch import nn
from torch.nn import functional as F

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class ThreeByThree(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.adaptive_avg_pool2d(x, 3)


SAMPLES = [(torch.linspace(-1, 2, 2 * size**2).reshape(1, 2, size, size),) for size in (6, 9, 5, 2)]
BOTH = ({2: "height", 3: "width"},)


def breaks() -> Claim:
    return export("dynamo", ThreeByThree(), SAMPLES[0], dynamic_shapes=BOTH), ThreeByThree(), SAMPLES


def weights(size: int) -> torch.Tensor:
    part, place = torch.arange(3)[:, None], torch.arange(size)
    inside = (place >= part * size // 3) & (place < ((part + 1) * size + 2) // 3)
    return inside.float() / inside.sum(1, keepdim=True)


class ByWeights(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return weights(x.shape[2]) @ x @ weights(x.shape[3]).T


def by_weights() -> Claim:
    """Multiply by weights that are computed from the size. The product gives the mean of each part."""
    return export("dynamo", ByWeights(), SAMPLES[0], dynamic_shapes=BOTH), ThreeByThree(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It computes the start and end of each part from the size."""
    return export("to_onnx", ThreeByThree(), SAMPLES[0], dynamic_shapes=BOTH), ThreeByThree(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*: shape \[(\d+, ){3}\d+\] where eager has \[\d+, \d+, (\d+), \2\]\n?",
    check="unseen size",
    breaks=breaks,
    op="adaptive_avg_pool",
    fixes=(Fix("change the model", by_weights), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxscript#1751",),
)
