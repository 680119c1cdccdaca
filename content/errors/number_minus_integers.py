"""Cannot find a compatible OpOverload for aten.sub: a float number minus a tensor of integers, as in `(1.0 - mask) * -1e4`

Before the translation the exporter makes conversions of dtypes explicit. It looks for the overload of each operator whose arguments fit.
`1.0 - mask` is `aten.rsub`, which becomes `aten.sub` with the number first, and no overload of `aten.sub` takes a number first. With a mask
of floats nothing has to be converted, so nobody looks. The error is new in torch 2.13.
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
    """Convert the mask to the dtype of the scores yourself."""
    return export("dynamo", Converted(), SAMPLES[0], dynamic_shapes=ROWS), Masked(), SAMPLES


class Turned(nn.Module):
    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return scores + (mask - 1.0) * 1e4


def turned() -> Claim:
    """Turn the difference round: a tensor minus a number has an overload."""
    return export("dynamo", Turned(), SAMPLES[0], dynamic_shapes=ROWS), Masked(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` converts the number."""
    return export("to_onnx", Masked(), SAMPLES[0], dynamic_shapes=ROWS), Masked(), SAMPLES


ERROR = KnownError(
    stage="decomposition",
    message=r"Cannot find a compatible OpOverload for aten\.\w+ with the provided arguments",
    breaks=breaks,
    fixes=(Fix("change the model", converted), Fix("change the model", turned), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#194381", "pytorch/pytorch#194522", "huggingface/transformers#48191"),
)
