"""The end of a longer input is lost: `x.split(2)` returns as many parts as for the example

Python iterates over the parts that `split` returns, so the capture needs their number. It uses that of the example, and the exported model
computes exactly that many parts. The end of a longer input is dropped. A shorter input fails with `Invalid sequence index`.
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
    """Reshape the parts into a dimension. Compute them all at once. If the last part can be smaller, pad the input first."""
    return export("dynamo", ByAxis(), SAMPLES[0], dynamic_shapes=ROWS), SumOfPairs(), SAMPLES


class ByMap(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(lambda pair: pair.sum(0))(x.reshape(-1, 2, 3))


def by_map() -> Claim:
    """Use `torch.vmap` over the parts. It helps if the computation for one part is more than one operator with a `dim` argument."""
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
