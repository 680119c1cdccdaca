"""Constraints violated: rows was inferred to be a constant, or your code specialized it to be a constant: a fixed size in `forward`

You declared a dimension as dynamic, but `forward` combines it with a fixed size. Examples are a tensor created for the size of the example,
a `reshape` with a number, or a mask of fixed length. A single size fits, so torch.export raises this error. Older versions of PyTorch
report "Not all values of rows are valid because rows was inferred to be a constant (4)" for the same problem.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Positions(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(4.0)[:, None]


class PositionsOfTheInput(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(x.shape[0], dtype=x.dtype)[:, None]


class PositionsCut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positions", torch.arange(32.0)[:, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.positions[: x.shape[0]]


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 2)]
ROWS = ({0: torch.export.Dim("rows", min=2, max=32)},)


def breaks() -> Claim:
    return export("torch.export", Positions(), SAMPLES[0], dynamic_shapes=ROWS), Positions(), SAMPLES[:1]


def made_for_the_input() -> Claim:
    """Create the tensor with the size of the input: `x.shape[0]` in place of the number."""
    return export("torch.export", PositionsOfTheInput(), SAMPLES[0], dynamic_shapes=ROWS), PositionsOfTheInput(), SAMPLES


def cut_from_the_longest() -> Claim:
    """Create the tensor for the largest size and slice it to the size of the input."""
    return export("torch.export", PositionsCut(), SAMPLES[0], dynamic_shapes=ROWS), PositionsOfTheInput(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Constraints violated \(\w+\)![^\n]*\n[^\n]*(?:You marked \w+ as dynamic but your code specialized it to be a constant"
    r"|was inferred to be a constant)|Not all values of [^\n]* was inferred to be a constant",
    breaks=breaks,
    fixes=(Fix("change the model", made_for_the_input), Fix("change the model", cut_from_the_longest)),
    kin=r"Constraints violated \(|is (?:exported as )?the constant \d+|inferred a static shape of \d+",
    advice="create the tensor with the size of the input: x.shape[0] in place of the number",
    threads=("pytorch/pytorch#140011", "pytorch/pytorch#121038", "pytorch/pytorch#118289"),
)
