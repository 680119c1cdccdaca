"""`F.batch_norm(training=True)` is exported as inference: normalised by the running statistics

You ask for the statistics of the batch, and the capture notes it: `training` is true in its graph. The translation writes ONNX's
`BatchNormalization` without `training_mode`, which reads the running mean and variance. Shapes are right, every value is off. A
`nn.BatchNorm` in training mode meets the same.
"""

import torch
import torch.nn.functional as F
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

MEAN, VARIANCE = torch.full((3,), 5.0), torch.full((3,), 4.0)


class ByBatch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, MEAN.clone(), VARIANCE.clone(), training=True)


SAMPLES = [(torch.arange(15.0 * rows).reshape(rows, 3, 5).sin(),) for rows in (4, 9, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", ByBatch(), SAMPLES[0], dynamic_shapes=ROWS), ByBatch(), SAMPLES


class Written(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        deviation = x - x.mean((0, 2), keepdim=True)
        variance = (deviation * deviation).mean((0, 2), keepdim=True)
        return deviation / torch.sqrt(variance + 1e-5)


def written() -> Claim:
    """Write the statistics of the batch out: two means and a division."""
    return export("dynamo", Written(), SAMPLES[0], dynamic_shapes=ROWS), ByBatch(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` writes the means itself."""
    return export("to_onnx", ByBatch(), SAMPLES[0], dynamic_shapes=ROWS), ByBatch(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+, \d+, \d+\]: \S+ where eager has \S+ \((\d+) of \1 elements differ\)",
    check="export inputs",
    breaks=breaks,
    op="batch_norm",
    fixes=(Fix("change the model", written), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#49229", "pytorch/pytorch#75252", "microsoft/onnxscript#1791"),
)
