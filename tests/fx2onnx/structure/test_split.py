"""Loops over the parts of `split`, the last of which may be shorter: as many turns as there are whole parts, and a test of what is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from modules import Of
from torch import Tensor, nn

from exportlab import to_onnx, verify
from fx2onnx.errors import ToOnnxError

ROWS = ({0: "rows"},)
SIZES = (1, 2, 3, 7, 8, 25, 63, 64, 65, 130, 1001)
HERE = r"\S*test_split\.py:\d+ in "


def fold(x: Tensor) -> Tensor:
    state = torch.zeros(3)
    for part in x.split(2):
        state = state * 0.5 + part.mean(0)
    return state


TAKEN: dict[str, Callable[[Tensor], Tensor]] = {
    "one after the other": lambda x: torch.cat([part.cumsum(0) for part in x.split(2)]),
    "another size": lambda x: torch.cat([part.softmax(0) for part in torch.split(x, 3)]),
    "another axis": lambda x: torch.cat([part.cumsum(1) for part in x.T.split(2, dim=1)], 1),
    "a state": fold,
    "a row of each": lambda x: torch.stack([part.mean(0) for part in x.split(2)]),
    "two at once": lambda x: torch.cat([a * b.sum(0) for a, b in zip(x.split(2), (x * 2).split(2), strict=True)]),
    "numbered": lambda x: torch.cat([part.cumsum(0) * i for i, part in enumerate(x.split(2))]),
    "how many": lambda x: torch.cat([part.cumsum(0) for part in x.split(2)]) * len(x.split(2)),
    "longer than the runs": lambda x: torch.cat([part.cumsum(0) * i for i, part in enumerate(x.split(64))]),
}
REFUSED: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "backwards": (lambda x: torch.cat([part.cumsum(0) for part in reversed(x.split(2))]), "runs backwards at " + HERE),
    "the last": (lambda x: x.split(2)[-1] * 2, "indexed by a slice or from the end, at " + HERE),
}


class LocalAttention(nn.Module):
    """Attends within 32 places."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        parts = zip(*(one.split(32, 1) for one in self.project(x).split(8, -1)), strict=True)
        return torch.cat([F.scaled_dot_product_attention(query, key, value) for query, key, value in parts], 1)


@pytest.mark.parametrize("rows", [7, 70])
@pytest.mark.parametrize("name", TAKEN)
def test_parts_are_right_at_sizes_never_run(name: str, rows: int) -> None:
    torch.manual_seed(0)
    model, example = Of(TAKEN[name]).eval(), torch.randn(rows, 3)
    program = to_onnx(model, (example,), dynamic_shapes=ROWS, capture="run")
    assert "test_split.py" in next(iter(program.report.branches))
    verify(program, model, [(example,), *((torch.randn(size, 3),) for size in (*SIZES, 0))]).check()


@pytest.mark.parametrize("seq", [7, 70])
def test_parts_of_one_of_two_moving_axes(seq: int) -> None:
    model, example = LocalAttention().eval(), torch.randn(2, seq, 8)
    program = to_onnx(model, (example,), dynamic_shapes=({0: "batch", 1: "seq"},), capture="run")
    verify(program, model, [(example,), *((torch.randn(batch, size, 8),) for batch in (1, 3) for size in SIZES)]).check()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_asked_of_the_parts_otherwise_is_refused(name: str) -> None:
    function, why = REFUSED[name]
    with pytest.raises(ToOnnxError, match=why):
        to_onnx(Of(function).eval(), (torch.randn(7, 3),), dynamic_shapes=ROWS, capture="run")
