"""When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names: it has names of the file, or of a `**` argument

A dict of `dynamic_shapes` is read by the parameters of `forward`: all of them that the call fills, by their own names. Names that you
give to the file by `input_names` mean nothing here. Neither do keywords that `forward` takes by `**kwargs`: for it they are all
one argument, called `kwargs`.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * scale


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3), torch.arange(3.0)) for rows in (4, 7, 1)]


def breaks() -> Claim:
    shapes = {"pixels": {0: "rows"}, "scale": None}
    return export("dynamo", Scaled(), SAMPLES[0], input_names=["pixels", "scale"], dynamic_shapes=shapes), Scaled(), SAMPLES


def own_names() -> Claim:
    """Use the names that `forward` has, and `None` for an argument that keeps its size. The file may still call them as you like."""
    shapes = {"x": {0: "rows"}, "scale": None}
    return export("dynamo", Scaled(), SAMPLES[0], input_names=["pixels", "scale"], dynamic_shapes=shapes), Scaled(), SAMPLES


def by_position() -> Claim:
    """Or leave names out: a tuple has one entry for each argument, in their order."""
    shapes = ({0: "rows"}, None)
    return export("dynamo", Scaled(), SAMPLES[0], input_names=["pixels", "scale"], dynamic_shapes=shapes), Scaled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"its top-level keys must be the arg names \[.*?\] of `inputs`, but here they are \[",
    breaks=breaks,
    fixes=(Fix("change the call", own_names), Fix("change the call", by_position)),
    threads=("pytorch/pytorch#150371", "pytorch/pytorch#164313"),
)
