"""Wrong only for a batch of one: `if x.shape[0] == 1` is taken to be false for every size that moves

A size that moves stands for 2 and more: 0 and 1 are special to torch.export, and it answers questions about them by itself. So
`x.shape[0] == 1` is false, and the branch for a single row is not in the graph. Unlike the branch of `if x.shape[0] > 4`, torch.export does
not even note it down: sizes 0 and 1 are accepted when it runs, and by the file as well.
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
    """Count the rows in a tensor, and pick with `torch.where`."""
    return export("dynamo", CentredByCount(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


class Weighted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.ones_like(x[:, 0]).sum()
        return x - x.mean(0) * (rows > 1)


def weighted() -> Claim:
    """Where the branches differ by a term, multiply the term with the answer: nothing is computed twice."""
    return export("dynamo", Weighted(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*\[0, [\d, ]+\]: \S+ where eager has \S+ \(\d+ of \d+ elements differ\)$",
    check="unseen size",
    breaks=breaks,
    fixes=(Fix("change the model", counted), Fix("change the model", weighted)),
    threads=("pytorch/pytorch#151582",),
)
