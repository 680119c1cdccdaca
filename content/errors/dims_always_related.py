"""The values of b = L['y'].size()[0] and a = L['x'].size()[0] must always be equal: two `Dim`s for one size

Two different `Dim`s declare two independent sizes. This model adds the tensors row by row, so the sizes have to be equal. If it removed one
row first, one size would have to be larger by 1. The message names the relation, and `Suggested fixes` shows how to declare it.
"""

import torch
from torch import nn
from torch.export import Dim

from exportlab.errors.known import Claim, Fix, KnownError


class Added(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


SAMPLES = [(torch.ones(rows, 3), torch.full((rows, 3), 5.0)) for rows in (4, 7, 1)]


def breaks() -> Claim:
    shapes = ({0: Dim("a")}, {0: Dim("b")})
    return torch.export.export(Added(), SAMPLES[0], dynamic_shapes=shapes), Added(), SAMPLES


def one_dim() -> Claim:
    """Use one `Dim` for both. Write `rows + 1` for a size that is larger by 1."""
    rows = Dim("rows")
    return torch.export.export(Added(), SAMPLES[0], dynamic_shapes=({0: rows}, {0: rows})), Added(), SAMPLES


def dim_dynamic() -> Claim:
    """Use `Dim.DYNAMIC`. It doesn't declare a relation. torch.export infers it, and the exported program checks it."""
    shapes = ({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})
    return torch.export.export(Added(), SAMPLES[0], dynamic_shapes=shapes), Added(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"The values of \w+ = .* must always be (?:equal|related to the values of)",
    breaks=breaks,
    fixes=(Fix("change the call", one_dim), Fix("change the call", dim_dynamic)),
    threads=("pytorch/pytorch#126607",),
    kin=r"Constraints violated \(",
)
