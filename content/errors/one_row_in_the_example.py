"""export 0/1 specialized due to hint of 1: the example has one row, but the dimension is marked as dynamic

Sizes 0 and 1 behave differently from other sizes: a size of 1 broadcasts, and a tensor of size 0 is empty. Therefore torch.export
specialises a dimension whose size in the example is 0 or 1. `Dim.DYNAMIC` makes this an error. `Dim.AUTO` only logs a line, and the
dimension stays static.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


ONE, TWO, SEVEN, NONE = ((torch.ones(rows, 3),) for rows in (1, 2, 7, 0))
ROWS = ({0: torch.export.Dim.DYNAMIC},)


def breaks() -> Claim:
    return torch.export.export(Doubled(), ONE, dynamic_shapes=ROWS), Doubled(), [ONE, SEVEN]


def two_rows() -> Claim:
    """Export with an example of two rows or more. Choose a number that isn't the size of another dimension. The exported program also
    accepts one row.
    """
    return torch.export.export(Doubled(), TWO, dynamic_shapes=ROWS), Doubled(), [TWO, SEVEN, ONE, NONE]


def torch_onnx() -> Claim:
    """Use `torch.onnx.export`. It captures with `backed_size_oblivious=True`, which treats 1 like any other size. Still verify the model at
    other sizes.
    """
    return export("dynamo", Doubled(), ONE, dynamic_shapes=({0: "rows"},)), Doubled(), [ONE, TWO, SEVEN]


ERROR = KnownError(
    stage="capture",
    message=r"but export 0/1 specialized due to hint of [01] for dimension",
    breaks=breaks,
    fixes=(Fix("change the call", two_rows), Fix("another exporter", torch_onnx)),
    threads=("pytorch/pytorch#151582", "pytorch/pytorch#151827", "pytorch/pytorch#150716"),
)
