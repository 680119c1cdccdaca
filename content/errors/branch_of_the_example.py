"""Wrong results at another batch size after `torch.onnx.export`: an `if` on `x.shape[0]` was decided by the example

The capture knows the size of the example and follows only the branch that this size takes. torch.export records a guard for this, and the
exported program rejects other sizes when it runs. `torch.onnx.export` drops the guards, so the ONNX model has one branch and accepts every
size.

To get an error at export instead, capture the model with `torch.export.export` and a `Dim`, then pass the program to `torch.onnx.export`.
{doc}`/generated/gallery/torch_export/dynamic_shapes` shows this.
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
    """Count the rows in a tensor and use `torch.where`. Values computed from a tensor stay in the graph. Both branches are computed."""
    return export("dynamo", ByCount(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


class ByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.ones_like(x[:, 0]).sum()
        return torch.cond(rows > 4, lambda x: x * 2, lambda x: x * 3, (x,))


def cond() -> Claim:
    """Count the rows in a tensor and use `torch.cond`. It runs one of the branches, which helps if a branch is expensive."""
    return export("dynamo", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It also runs the model at other sizes and writes the `if` as an ONNX `If`."""
    return export("to_onnx", BySize(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*\[[\d, ]+\]: \S+ where eager has \S+ \(\d+ of \d+ elements differ\)\nunseen size: output\S*\[",
    check="unseen size",
    breaks=breaks,
    fixes=(Fix("change the model", counted), Fix("change the model", cond), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#151582",),
)
