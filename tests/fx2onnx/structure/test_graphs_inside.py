"""Loops that are rolled up, and operators that take functions, before a test, behind it and on both sides of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import With
from torch import Tensor, nn
from torch._higher_order_ops import scan

from exportlab import to_onnx, verify

ROWS = ({0: "rows"},)
SIZES = (1, 2, 7, 10, 11, 20, 21, 101, 0)


def something_else_at_one_row(_: Any, x: Tensor) -> Tensor:
    return x * 5 if x.shape[0] == 1 else torch.stack([row + 1 for row in x])


def a_loop_on_both_sides(layer: Any, x: Tensor) -> Tensor:
    state = torch.zeros(1, 4)
    if x.shape[0] % 2 == 0:
        for row in x:
            state = layer.cell(row[None], state)
    else:
        for row in x:
            state = layer.cell(-row[None], state) + 1
    return state * x.shape[0]


def the_same_loop_after_it(_: Any, x: Tensor) -> Tensor:
    y = torch.stack([row.cumsum(0) for row in x * 2]) if x.shape[0] > 20 else torch.stack([row.exp() for row in x * 2])
    return y + torch.stack([row.cumsum(0) * i for i, row in enumerate(x)])


def a_scan_before_it(_: Any, x: Tensor) -> Tensor:
    _, y = scan(lambda carry, row: (carry * 0.5 + row, carry.sin()), x[0] * 0, x)
    return y * 2 if x.shape[0] > 10 else y.cumsum(0)


def conds_around_a_test_of_a_value(layer: Any, x: Tensor) -> Tensor:
    y = torch.cond(x.max() > 1, layer.linear, torch.neg, (x,))
    if y.sum() > 0:
        return torch.cond(x.min() < 0, lambda y: y * 2, lambda y: y - 1, (y,))
    return torch.cond(x.min() < 0, lambda y: y.cos() @ layer.linear.weight, lambda y: y * 3, (y,))


TAKEN = (
    something_else_at_one_row,
    a_loop_on_both_sides,
    the_same_loop_after_it,
    a_scan_before_it,
    conds_around_a_test_of_a_value,
)


@pytest.mark.parametrize("function", TAKEN)
def test_both_sides_are_right_at_sizes_never_run(function: Callable[[Any, Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    model = With(function, cell=nn.GRUCell(4, 4), linear=nn.Linear(4, 4)).eval()
    example = torch.rand(6, 4)
    program = to_onnx(model, (example,), dynamic_shapes=ROWS, capture="run")
    assert program.report.branches
    verify(program, model, [(example,), *((torch.rand(rows, 4) * 2 + shift,) for rows in SIZES for shift in (0, -1, -2))]).check()
