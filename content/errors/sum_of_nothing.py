"""The shape is [0, 3] where PyTorch returns [0]: `sum(-1)` of an empty tensor keeps the axis

The file is right: its `ReduceSum` says that the last axis goes. For an input without elements ONNX Runtime only works out the shape, and
there it takes axes that are counted from the end for none: so none goes. `mean`, `amax`, `prod` and `logsumexp` do the same. What comes
after meets an axis too many, in batches without a row only.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class RowSums(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1)


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", RowSums(), SAMPLES[0], dynamic_shapes=ROWS), RowSums(), SAMPLES


class RowSumsForwards(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1)


def forwards() -> Claim:
    """Count the axis from the front: `sum(1)`. The reductions that ONNX Runtime gets wrong are those by a negative number."""
    return export("dynamo", RowSumsForwards(), SAMPLES[0], dynamic_shapes=ROWS), RowSums(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` writes every axis counted from the front."""
    return export("to_onnx", RowSums(), SAMPLES[0], dynamic_shapes=ROWS), RowSums(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*: shape \[0, [\d, ]+\] where eager has \[0(, \d+)*\]",
    check="unseen size",
    breaks=breaks,
    op=r"aten\.sum",
    fixes=(Fix("change the model", forwards), Fix("another exporter", to_onnx)),
    threads=(),
)
