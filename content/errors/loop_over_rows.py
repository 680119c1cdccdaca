"""conflicts between user-specified ranges and inferred ranges: tracing inferred a static shape because of a loop over rows

You marked a dimension as dynamic, but the model specialised it to the size of your example. A Python loop over the dimension does this. It
runs once per row of the example, and the graph contains one copy of its body per iteration. Adding the tensor to another one with a static
dimension does it too, for example to an input that isn't in `dynamic_axes`.
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
    """Vectorise the loop. Depending on the formula, use `cumsum`, a mask, or, as here, a product with a triangular matrix of weights."""
    return export("dynamo", FadedAtOnce(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


class FadedByScan(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def step(last: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            new = last / 2 + row
            return new, new.clone()

        return scan(step, torch.zeros(3), x)[1]


def by_scan() -> Claim:
    """Use `scan` if each row depends on the previous one. It records one step, and the exported model loops over as many rows as the input
    has.
    """
    return export("dynamo", FadedByScan(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It also runs the model at other sizes, and writes a `Loop` if the number of iterations follows the number of rows."""
    return export("to_onnx", Faded(), SAMPLES[0], dynamic_shapes=ROWS), Faded(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"conflicts between user-specified ranges and inferred ranges [^\n]*\n[^\n]*but tracing inferred a static shape of \d+",
    breaks=breaks,
    op=r"\bfor\b",
    fixes=(Fix("change the model", at_once), Fix("change the model", by_scan), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#149590", "pytorch/pytorch#148886"),
)
