"""Encountered aliasing during higher order op tracing: `scan` or `while_loop` returns a tensor twice, or returns its input

A step of `scan` returns the new state and the output of this step. They are often the same tensor: `return new, new`. The body of a
`while_loop` has to return its whole state, including what it didn't change: `return i + 1, x`. Both raise this error, because the inputs
and outputs of a step must not alias each other.
"""

import torch
from torch import nn
from torch._higher_order_ops.scan import scan

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Faded(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last, rows = torch.zeros(3), []
        for row in x:
            last = last / 2 + row
            rows.append(last)
        return torch.stack(rows)


class ByScan(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return scan(self.step, torch.zeros(3), x)[1]

    def step(self, last: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        new = last / 2 + row
        return new, new


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", ByScan(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


class ByScanOfClones(ByScan):
    def step(self, last: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        new, same = super().step(last, row)
        return new, same.clone()


def clone() -> Claim:
    """Clone the repeated or unchanged tensor with `.clone()`."""
    return export("dynamo", ByScanOfClones(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


class AtOnce(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        place = torch.arange(x.shape[0])
        age = place[:, None] - place
        return torch.where(age >= 0, 0.5**age, 0.0) @ x


def at_once() -> Claim:
    """Vectorise the loop. Here one product with a triangular matrix of weights computes all rows."""
    return export("dynamo", AtOnce(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Encountered aliasing during higher order op tracing\s+Higher Order Operator: torch\.(?:ops\.higher_order\.scan|while_loop)",
    breaks=breaks,
    fixes=(Fix("change the model", clone), Fix("change the model", at_once)),
    threads=("pytorch/pytorch#153832", "pytorch/pytorch#153705"),
)
