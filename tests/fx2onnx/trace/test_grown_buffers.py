"""A buffer that a longer call replaces is taken where no later call can tell, and refused everywhere else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import With
from torch import Tensor, nn

from exportlab import to_onnx
from fx2onnx.paths.guard_forking import GuardForking
from fx2onnx.trace.refusal import TraceUnsupported

ROWS = ({0: "rows"},)
TABLE = 6


def table(rows: int) -> Tensor:
    return torch.sin(torch.arange(rows).float()[:, None] * torch.tensor([1.0, 0.1, 0.01]))


def grown(self: Any, x: Tensor, make: Callable[[int], Tensor] = table) -> Tensor:
    if x.shape[0] > self.table.shape[0]:
        self.table = nn.Buffer(make(x.shape[0]), persistent=False)
    return self.table


def positions(self: Any, x: Tensor) -> Tensor:
    return x + grown(self, x)[: x.shape[0]]


def positions_of_another_kind(self: Any, x: Tensor) -> Tensor:
    return x + grown(self, x, lambda rows: table(rows) * 2)[: x.shape[0]]


def relative_to_all(self: Any, x: Tensor) -> Tensor:
    return x + grown(self, x)[: x.shape[0]] - self.table.mean(0)


def rows_of_all_calls(self: Any, x: Tensor) -> Tensor:
    self.table = torch.cat([self.table, x])
    return x * 2


def as_many_rows_as_the_last(self: Any, x: Tensor) -> Tensor:
    self.table = torch.ones(x.shape[0], 3)
    return x * 2


REFUSED = {
    "it does not begin with the other": positions_of_another_kind,
    "its length is seen": relative_to_all,
    "it is made of inputs": rows_of_all_calls,
    "it may be shorter": as_many_rows_as_the_last,
}


def model_of(function: Callable[..., Tensor]) -> nn.Module:
    model = With(function).eval()
    model.register_buffer("table", table(TABLE), persistent=False)
    return model


@pytest.mark.parametrize("rows", [2, TABLE, TABLE + 3])
def test_a_longer_table_that_begins_with_the_shorter_is_made_in_the_file(rows: int) -> None:
    model = model_of(positions)
    held = model.table
    program = to_onnx(model, (torch.randn(rows, 3),), dynamic_shapes=ROWS, capture="run")
    assert model.table is held
    for size in (0, 1, 2, TABLE, TABLE + 1, 40, 5):
        x = torch.randn(size, 3)
        torch.testing.assert_close(program(x)[0], copy.deepcopy(model)(x))


def test_that_it_is_longer_than_another_is_no_test_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    told_apart: list[str] = []
    both = GuardForking._both

    def noted(self: GuardForking, test: Any, *sizes: Any) -> Any:
        told_apart.append(test.line)
        return both(self, test, *sizes)

    monkeypatch.setattr(GuardForking, "_both", noted)
    to_onnx(model_of(positions), (torch.randn(3, 3),), dynamic_shapes=ROWS, capture="run")
    assert len(told_apart) == 1


def test_a_table_of_a_part_is_found_by_its_path() -> None:
    model = nn.Sequential(nn.Tanh(), model_of(positions)).eval()
    program = to_onnx(model, (torch.randn(3, 3),), dynamic_shapes=ROWS, capture="run")
    for size in (2, 20):
        x = torch.randn(size, 3)
        torch.testing.assert_close(program(x)[0], copy.deepcopy(model)(x))


@pytest.mark.parametrize("function", REFUSED.values(), ids=REFUSED.keys())
def test_a_table_of_which_a_later_call_could_tell_is_refused(function: Callable[..., Tensor]) -> None:
    model = model_of(function)
    held = model.table
    with pytest.raises(TraceUnsupported, match=r"the model (replaces its buffer table|makes table longer)"):
        to_onnx(model, (torch.randn(4, 3),), dynamic_shapes=ROWS, capture="run")
    assert model.table is held


def test_a_buffer_of_two_names_is_seen_where_the_second_is_replaced() -> None:
    def counts(self: Any, x: Tensor) -> Tensor:
        self.again = self.again + 1
        return x * 2

    model = model_of(counts)
    model.first = model.again = nn.Buffer(torch.zeros(3))
    with pytest.raises(TraceUnsupported, match="the model replaces its buffer again"):
        to_onnx(model, (torch.randn(4, 3),), dynamic_shapes=ROWS, capture="run")
