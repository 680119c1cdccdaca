"""The end of a longer input is lost: `x.split(2)` gives as many parts as the example had

Python goes through what `split` returns, so the capture has to know how many parts there are, and takes the number of the example. The file
computes that many. A longer input loses its end without an error; a shorter one fails with `Invalid sequence index`.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class SumOfPairs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([pair.sum(0) for pair in x.split(2)])


SAMPLES = [(torch.arange(3.0 * rows).reshape(rows, 3),) for rows in (4, 8, 6, 2)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", SumOfPairs(), SAMPLES[0], dynamic_shapes=ROWS), SumOfPairs(), SAMPLES


class ByAxis(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 2, 3).sum(1)


def by_axis() -> Claim:
    """Make the parts an axis, with `reshape`, and compute them all at once. A last part that is smaller has to be padded first."""
    return export("dynamo", ByAxis(), SAMPLES[0], dynamic_shapes=ROWS), SumOfPairs(), SAMPLES


class ByMap(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(lambda pair: pair.sum(0))(x.reshape(-1, 2, 3))


def by_map() -> Claim:
    """Where one part needs more than an operator that takes an axis, `torch.vmap` writes the model of one part for all of them."""
    return export("dynamo", ByMap(), SAMPLES[0], dynamic_shapes=ROWS), SumOfPairs(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^unseen size: output\S*: shape \[[1-9]\d*(, \d+)+\] where eager has \[[\d, ]+\]\n?",
    check="unseen size",
    breaks=breaks,
    op="split",
    fixes=(Fix("change the model", by_axis), Fix("change the model", by_map)),
    threads=("pytorch/vision#2994",),
)
