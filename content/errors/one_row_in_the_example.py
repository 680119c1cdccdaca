"""export 0/1 specialized due to hint of 1: the example has one row, but the axis is meant to be dynamic

Sizes 0 and 1 behave unlike all others: one row is repeated against many, none at all takes shortcuts. So the capture treats a size
of 0 or 1 in the example as a number, not as something that moves. With `Dim.DYNAMIC` this is an error. With `Dim.AUTO`, all you
get is a line in the log, and the axis stays as it is.
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
    """Give an example of two rows or more, and of another number than any other axis has. The program then takes one row as well."""
    return torch.export.export(Doubled(), TWO, dynamic_shapes=ROWS), Doubled(), [TWO, SEVEN, ONE, NONE]


def torch_onnx() -> Claim:
    """`torch.onnx.export` captures with a setting of torch's under which 1 is a size like any other. Verify at other sizes all the same."""
    return export("dynamo", Doubled(), ONE, dynamic_shapes=({0: "rows"},)), Doubled(), [ONE, TWO, SEVEN]


ERROR = KnownError(
    stage="capture",
    message=r"but export 0/1 specialized due to hint of [01] for dimension",
    breaks=breaks,
    fixes=(Fix("change the call", two_rows), Fix("another exporter", torch_onnx)),
    threads=("pytorch/pytorch#151582", "pytorch/pytorch#151827", "pytorch/pytorch#150716"),
)
