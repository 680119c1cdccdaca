"""Messages and limits call a size that moves by the name of its axis, and not by a symbol of torch's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import Of, Op
from torch import Tensor
from torch.export import Dim

from exportlab import to_onnx
from fx2onnx.errors import CaptureError, FrozenDimension

X = torch.randn(2, 8)
SYMBOL = re.compile(r"\bs\d+\b|L\['")  # as torch calls sizes
NAMED: dict[str, Any] = {"steps": "steps", "S": Dim("S"), "axis 1 of x": Dim.DYNAMIC}  # sympy has an S of its own


def only_even(x: Tensor) -> Tensor:
    return x.view(x.shape[1] // 2, 2, -1)


def another_operator(x: Tensor) -> Tensor:
    return x.split(x.shape[1] // 2, 1)[0]


def of_two_lengths(x: Tensor) -> Tensor:
    return torch.cat((x, x), 1) if x.sum() > 0 else x * 1


def at_most_as_many(x: Tensor, number: Tensor) -> Tensor:
    count = number.item()
    torch._check(count >= 0)
    torch._check(count < x.shape[1])
    return x[:, :count]


def no_threes(x: Tensor) -> Tensor:
    return x + 1 if x.shape[1] % 3 else x.split(x.shape[1] // 2, 1)[0]


REFUSED: dict[Callable[..., Any], str] = {
    only_even: "the model runs at 0 of the other sizes tried .at {name} = 19: ",
    another_operator: "but aten.split.Tensor at {name} = 19",
    of_two_lengths: "that cannot be one output: .2, 2.{name}. of torch.float32.*, but .2, {name}. of torch.float32",
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("function", REFUSED)
def test_runs_are_told_by_the_names_of_axes(function: Callable[..., Any], name: str) -> None:
    with pytest.raises(CaptureError, match=REFUSED[function].format(name=name)) as caught:
        to_onnx(Of(function), (X,), dynamic_shapes=({1: NAMED[name]},), capture="run")
    assert not SYMBOL.search(str(caught.value))


@pytest.mark.parametrize("name", NAMED)
def test_what_torch_checks_is_told_by_the_names_of_axes(name: str) -> None:
    program = to_onnx(Op(at_most_as_many), (X, torch.tensor(3)), dynamic_shapes=(({1: NAMED[name]}, None),), capture="torch.export")
    assert [f"{name} >= 1 + u0" in limit.replace("args_0", "x") for limit in program.report.limits] == [True]


def test_a_captured_program_without_names_tells_sizes_by_their_axes() -> None:
    captured = torch.export.export(Of(torch.sin), (X,), dynamic_shapes=({1: Dim("steps", min=3, max=9)},))
    limits = to_onnx(captured).report.limits
    assert limits == ('the program was captured for "axis 1 of x" of at least 3 and at most 9; the exported model does not check this',)


@pytest.mark.parametrize("function", [only_even, no_threes])
def test_what_torch_export_requires_is_told_by_the_names_of_axes(function: Callable[..., Any]) -> None:
    with pytest.raises(FrozenDimension, match="Not all values of steps in the specified range satisfy") as caught:
        to_onnx(Of(function), (X,), dynamic_shapes=({1: Dim("steps")},), capture="torch.export")
    assert not SYMBOL.search(str(caught.value))
