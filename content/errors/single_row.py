"""Wrong result for batch size 1 only: torch.export assumes that `if x.shape[0] == 1` is False for a dynamic dimension

torch.export assumes that a dynamic size is 2 or more, because sizes 0 and 1 are special. It therefore evaluates `x.shape[0] == 1` as False,
and the branch for a single row isn't in the graph. For `if x.shape[0] > 4`, torch.export records a guard. Here it doesn't: the exported
program and the ONNX model both accept sizes 0 and 1.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Centred(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.shape[0] == 1 else x - x.mean(0)


SAMPLES = [(torch.arange(3.0 * rows).reshape(rows, 3) + 5,) for rows in (4, 7, 2, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Centred(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


class CentredByCount(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.ones_like(x[:, 0]).sum()
        return torch.where(rows == 1, x, x - x.mean(0))


def counted() -> Claim:
    """Count the rows in a tensor, and select with `torch.where`."""
    return export("dynamo", CentredByCount(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


class Weighted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.ones_like(x[:, 0]).sum()
        return x - x.mean(0) * (rows > 1)


def weighted() -> Claim:
    """Multiply the term that differs by the condition. Use this if the branches differ by one term; nothing is computed twice."""
    return export("dynamo", Weighted(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*\[0, [\d, ]+\]: \S+ where eager has \S+ \(\d+ of \d+ elements differ\)$",
    check="unseen size",
    breaks=breaks,
    fixes=(Fix("change the model", counted), Fix("change the model", weighted)),
    threads=("pytorch/pytorch#151582",),
)
