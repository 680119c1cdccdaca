"""conflicts between user-specified ranges and inferred ranges: tracing inferred a static shape, for example because of a loop over the rows

You asked for an axis that moves, and something in the model fixed it at the size of the example. A Python loop over the axis does so:
`range(x.shape[0])` has to end, so it ends where the example does, and the graph holds that many copies of the body. Adding the tensor
to one whose axis does not move does it too, for example to an input that `dynamic_axes` leaves out.
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


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Faded(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


class FadedAtOnce(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        place = torch.arange(x.shape[0])
        age = place[:, None] - place
        return torch.where(age >= 0, 0.5**age, 0.0) @ x


def at_once() -> Claim:
    """Say it for all rows at once, by whatever algebra allows: `cumsum`, a mask, here a product with a triangle of weights."""
    return export("dynamo", FadedAtOnce(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


class FadedByScan(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def step(last: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            new = last / 2 + row
            return new, new.clone()

        return scan(step, torch.zeros(3), x)[1]


def by_scan() -> Claim:
    """Where each row needs the one before it: `scan` records one step and becomes a loop of the file, as long as the input."""
    return export("dynamo", FadedByScan(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` runs the model at other sizes as well, and writes a `Loop` where the turns follow the number of rows."""
    return export("to_onnx", Faded(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"conflicts between user-specified ranges and inferred ranges [^\n]*\n[^\n]*but tracing inferred a static shape of \d+",
    breaks=breaks,
    op=r"\bfor\b",
    fixes=(Fix("change the model", at_once), Fix("change the model", by_scan), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#149590", "pytorch/pytorch#148886"),
)
