"""The values of b = L['y'].size()[0] and a = L['x'].size()[0] must always be equal: two `Dim`s for one size

Two `Dim`s promise two sizes that move on their own. The model adds the tensors row by row, so the sizes can only be equal; where it cuts
one row off before, one is larger by one. The message says which, and under `Suggested fixes` how to write it.
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
    """Use one `Dim` for both. One that is larger by one is `rows + 1`."""
    rows = Dim("rows")
    return torch.export.export(Added(), SAMPLES[0], dynamic_shapes=({0: rows}, {0: rows})), Added(), SAMPLES


def dim_dynamic() -> Claim:
    """Let the capture find it: `Dim.DYNAMIC` promises nothing about two axes, and the program checks that they are equal."""
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
