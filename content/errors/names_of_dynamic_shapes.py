"""When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names: `input_names` or a `**kwargs` argument

The keys of a `dynamic_shapes` dict are the parameter names of `forward`. The dict needs an entry for each parameter that you pass. The
names in `input_names` only rename the inputs of the ONNX model, so they don't count here. Keywords that `forward` collects in `**kwargs`
are one argument, called `kwargs`.
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
    """Use the parameter names of `forward`. An argument with a static shape gets `None`. `input_names` can still rename the inputs of the
    ONNX model.
    """
    shapes = {"x": {0: "rows"}, "scale": None}
    return export("dynamo", Scaled(), SAMPLES[0], input_names=["pixels", "scale"], dynamic_shapes=shapes), Scaled(), SAMPLES


def by_position() -> Claim:
    """Pass `dynamic_shapes` as a tuple. It has one entry per argument, in order, and needs no names."""
    shapes = ({0: "rows"}, None)
    return export("dynamo", Scaled(), SAMPLES[0], input_names=["pixels", "scale"], dynamic_shapes=shapes), Scaled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"its top-level keys must be the arg names \[.*?\] of `inputs`, but here they are \[",
    breaks=breaks,
    fixes=(Fix("change the call", own_names), Fix("change the call", by_position)),
    threads=("pytorch/pytorch#150371", "pytorch/pytorch#164313"),
)
