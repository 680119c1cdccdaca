"""The answer is wrong at another batch size, without any error: an `if` on a size was decided by the example

The capture knows the size of the example, and follows the branch that this size takes. torch.export notes down that it did so and refuses
other sizes when it runs. The ONNX exporter drops these notes: the file has one branch, and takes every size.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class BySize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 4:
            return x * 2
        return x * 3


SAMPLES = [(torch.ones(rows, 3),) for rows in (6, 4, 3, 9, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", BySize(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


class ByCount(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.ones_like(x[:, 0]).sum()
        return torch.where(rows > 4, x * 2, x * 3)


def counted() -> Claim:
    """Count the rows in a tensor, and pick with `torch.where`: what is computed from a tensor stays in the graph. Both are computed."""
    return export("dynamo", ByCount(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


class ByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.ones_like(x[:, 0]).sum()
        return torch.cond(rows > 4, lambda x: x * 2, lambda x: x * 3, (x,))


def cond() -> Claim:
    """The same with `torch.cond`, which runs one branch. Best where a branch is expensive."""
    return export("dynamo", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` runs the model at other sizes as well, and writes the `if` as an `If`."""
    return export("to_onnx", BySize(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*\[[\d, ]+\]: \S+ where eager has \S+ \(\d+ of \d+ elements differ\)\nunseen size: output\S*\[",
    check="unseen size",
    breaks=breaks,
    fixes=(Fix("change the model", counted), Fix("change the model", cond), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#151582",),
)
