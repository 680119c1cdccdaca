"""Could not guard on data-dependent expression u0 > 0: an `if` on an integer from `item()`, or on the number of rows a mask keeps

`n.item()` doesn't have a value during the capture. The graph represents it by a symbol, `u0`, which can be any integer. The number of rows
in `x[mask]` or `nonzero` is such a symbol too. You can use it as a size, but not in a Python `if`: the graph records one path, and the
value would have to choose it. The message quotes the line of your code after `Caused by`.
"""

import torch
from torch import nn
from torch.nn import functional as F

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class PaddedIfNeeded(nn.Module):
    def forward(self, x: torch.Tensor, missing: torch.Tensor) -> torch.Tensor:
        n = missing.item()
        return F.pad(x, (0, 0, 0, n), value=1.0) if n > 0 else x


SAMPLES = [(torch.ones(4, 3) * 2, torch.tensor(2)), (torch.ones(7, 3), torch.tensor(0)), (-torch.ones(1, 3), torch.tensor(3))]
ROWS = ({0: "rows"}, None)


def breaks() -> Claim:
    return export("dynamo", PaddedIfNeeded(), SAMPLES[0], dynamic_shapes=ROWS), PaddedIfNeeded(), SAMPLES


class PaddedAlways(nn.Module):
    def forward(self, x: torch.Tensor, missing: torch.Tensor) -> torch.Tensor:
        n = missing.item()
        torch._check(n >= 0)
        return F.pad(x, (0, 0, 0, n), value=1.0)


def without_the_test() -> Claim:
    """Drop the condition if it only saves work. Padding by 0 changes nothing. State what you know about the number with `torch._check`."""
    return export("dynamo", PaddedAlways(), SAMPLES[0], dynamic_shapes=ROWS), PaddedIfNeeded(), SAMPLES


class PaddedByCond(nn.Module):
    def forward(self, x: torch.Tensor, missing: torch.Tensor) -> torch.Tensor:
        return torch.cond(
            missing > 0,
            lambda x, missing: F.pad(x, (0, 0, 0, missing.item()), value=1.0),
            lambda x, missing: x.clone(),
            (x, missing),
        )


def cond() -> Claim:
    """Use `torch.cond`. It keeps both branches in the graph, and their outputs can have different sizes."""
    return export("dynamo", PaddedByCond(), SAMPLES[0], dynamic_shapes=ROWS), PaddedIfNeeded(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"data-dependent expression (?:.*\bu\d+.* [<>]=? .+|(?:Eq|Ne)\(.*\bu\d+[^()\n]*, (?![01]\))[^()\n]+\)) \(unhinted",
    op=r"\bif\b",
    breaks=breaks,
    fixes=(Fix("change the model", without_the_test), Fix("change the model", cond)),
    threads=("pytorch/pytorch#143222", "pytorch/pytorch#150891", "pytorch/pytorch#116336"),
)
