"""The output shape is [0, 3] where PyTorch returns [0]: `sum(-1)` of an empty tensor keeps the dimension

The exported model is right: its `ReduceSum` removes the last dimension. For an empty input, ONNX Runtime only computes the output shape,
and ignores negative axes while it does. So it keeps the dimension. `mean`, `amax`, `prod` and `logsumexp` behave in the same way. The
operators after it get one dimension too many, but only for an empty batch.
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
    """Use a positive dimension: `sum(1)`. Only reductions with a negative dimension are wrong in ONNX Runtime."""
    return export("dynamo", RowSumsForwards(), SAMPLES[0], dynamic_shapes=ROWS), RowSums(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes all axes as positive numbers."""
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
