"""You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant: a table cached in an earlier call

A tensor in the model has the fixed size of the example, and is combined with the input. Here `forward` makes a table once and keeps it, and
a call before the export has made it with the size of that call. `expand(4, 3)`, a state with a fixed batch size, and a Python loop over the
dimension cause the same message. If you didn't mark any dimension as dynamic, the cause is the example: after a failed export its tensors
stay marked, so create new ones.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            self.table = torch.arange(x.shape[0]).float()[:, None]
        return x + self.table


def rows(number: int) -> tuple[torch.Tensor]:
    return (torch.linspace(-1, 1, number * 3).reshape(number, 3),)


ROWS = ({0: "rows"},)
SAMPLES = [rows(4), rows(7), rows(1)]


def called_before() -> nn.Module:
    model = Positions()
    model(*rows(4))
    return model


def breaks() -> Claim:
    return export("torch.export", called_before(), rows(4), dynamic_shapes=ROWS), Positions(), SAMPLES


class PositionsOfThisCall(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(x.shape[0]).float()[:, None]


def made_in_each_call() -> Claim:
    """Compute the table in each call. A table that depends only on sizes costs little, and the graph computes it for any size."""
    return export("torch.export", PositionsOfThisCall(), rows(4), dynamic_shapes=ROWS), Positions(), SAMPLES


class PositionsOfALongTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(512).float()[:, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table[: x.shape[0]]


def long_enough() -> Claim:
    """Make the table in `__init__`, for the largest size, and slice it. The exported model contains the table. Its length is the limit."""
    return export("torch.export", PositionsOfALongTable(), rows(4), dynamic_shapes=ROWS), Positions(), SAMPLES


def new_module() -> Claim:
    """Export a new instance of the module. The table is then made during the capture, for any size."""
    return export("torch.export", Positions(), rows(4), dynamic_shapes=ROWS), Positions(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"You marked (?:L\[.*?\]|\w+)\S* as dynamic but your code specialized it to be a constant \(\d+\)",
    breaks=breaks,
    op=r"self\.\w+( =|\[)",
    fixes=(Fix("change the model", made_in_each_call), Fix("change the model", long_enough), Fix("change the call", new_module)),
    threads=("pytorch/pytorch#140011", "pytorch/pytorch#134137", "pytorch/pytorch#137029"),
)
