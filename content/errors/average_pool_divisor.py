"""`F.avg_pool2d(divisor_override=…)`: the exported model ignores the divisor

ONNX's `AveragePool` divides by the number of elements in the window and doesn't have an attribute for another divisor. Both exporters of
PyTorch write it anyway and drop the divisor. Shapes are right, but every value is wrong by a constant factor.
"""

import torch
import torch.nn.functional as F
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Pooled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, 3, divisor_override=2)


SAMPLES = [(torch.arange(36.0 * rows).reshape(rows, 1, 6, 6) + 1,) for rows in (2, 5, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Pooled(), SAMPLES[0], dynamic_shapes=ROWS), Pooled(), SAMPLES


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, 3) * (3 * 3 / 2)


def scaled() -> Claim:
    """Multiply the ordinary average by a constant factor. The factor is the number of elements in the window over the divisor. With
    padding, keep `count_include_pad=True`.
    """
    return export("dynamo", Scaled(), SAMPLES[0], dynamic_shapes=ROWS), Pooled(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes this factor."""
    return export("to_onnx", Pooled(), SAMPLES[0], dynamic_shapes=ROWS), Pooled(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+, \d+, \d+, \d+\]: \S+ where eager has \S+ \((\d+) of \1 elements differ\)",
    check="export inputs",
    breaks=breaks,
    op="avg_pool",
    fixes=(Fix("change the model", scaled), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#105349",),
)
