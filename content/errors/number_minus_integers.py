"""Cannot find a compatible OpOverload for aten.sub: a float minus an integer tensor, as in `(1.0 - mask) * -1e4`

Before it translates the graph, `torch.onnx.export` inserts explicit dtype conversions. It looks for an overload of each operator that fits
the arguments. `1.0 - mask` is `aten.rsub`, which becomes `aten.sub` with the number as its first argument, and `aten.sub` has no such
overload. A float mask doesn't need a conversion, so it doesn't fail. The error is new in torch 2.13.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Masked(nn.Module):
    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return scores + (1.0 - mask) * -1e4


def sample(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(-1, 1, rows * 5).reshape(rows, 5), torch.arange(rows * 5).reshape(rows, 5) % 2


SAMPLES = [sample(4), sample(7), sample(1), sample(0)]
ROWS = ({0: "rows"}, {0: "rows"})


def breaks() -> Claim:
    return export("dynamo", Masked(), SAMPLES[0], dynamic_shapes=ROWS), Masked(), SAMPLES


class Converted(nn.Module):
    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return scores + (1.0 - mask.to(scores.dtype)) * -1e4


def converted() -> Claim:
    """Convert the mask to the dtype of the scores. `1.0 - mask.to(scores.dtype)` doesn't need a conversion."""
    return export("dynamo", Converted(), SAMPLES[0], dynamic_shapes=ROWS), Masked(), SAMPLES


class Turned(nn.Module):
    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return scores + (mask - 1.0) * 1e4


def turned() -> Claim:
    """Subtract the number from the tensor. `mask - 1.0` has a matching overload."""
    return export("dynamo", Turned(), SAMPLES[0], dynamic_shapes=ROWS), Masked(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It converts the number."""
    return export("to_onnx", Masked(), SAMPLES[0], dynamic_shapes=ROWS), Masked(), SAMPLES


ERROR = KnownError(
    stage="decomposition",
    message=r"Cannot find a compatible OpOverload for aten\.\w+ with the provided arguments",
    breaks=breaks,
    fixes=(Fix("change the model", converted), Fix("change the model", turned), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#194381", "pytorch/pytorch#194522", "huggingface/transformers#48191"),
)
