"""Encountered aliasing during higher order op tracing: a step of `scan` or `while_loop` returns one tensor twice, or one that it was given

A step of `scan` gives back the new state and the row of this step, and often they are the same: `return new, new`. A body of `while_loop`
has to return all of its state, also what it left alone: `return i + 1, x`. Both are refused, for the tensors of a loop must not be
two names of one.
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
    """Return a clone of what is the same, and of what is passed on unchanged."""
    return export("dynamo", ByScanOfClones(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


class AtOnce(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        place = torch.arange(x.shape[0])
        age = place[:, None] - place
        return torch.where(age >= 0, 0.5**age, 0.0) @ x


def at_once() -> Claim:
    """Where algebra allows, do without the loop: one product with a triangle of weights says it for all rows."""
    return export("dynamo", AtOnce(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Encountered aliasing during higher order op tracing\s+Higher Order Operator: torch\.(?:ops\.higher_order\.scan|while_loop)",
    breaks=breaks,
    fixes=(Fix("change the model", clone), Fix("change the model", at_once)),
    threads=("pytorch/pytorch#153832", "pytorch/pytorch#153705"),
)
