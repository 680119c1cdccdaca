"""`F.batch_norm(training=True)` is exported in inference mode, with the running statistics

With `training=True`, batch norm uses the mean and variance of the batch, and the captured graph records this flag. The translation writes
ONNX's `BatchNormalization` without `training_mode`, which uses the running mean and variance. Shapes are right, but the values are wrong.
`nn.BatchNorm` modules in training mode have the same problem.
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
    """Compute the batch statistics with tensor operations. You need two means and a division."""
    return export("dynamo", Written(), SAMPLES[0], dynamic_shapes=ROWS), ByBatch(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes the means of the batch."""
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
