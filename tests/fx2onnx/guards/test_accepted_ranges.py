"""What `accept_ranges` accepts stands in the report and the file, by the line that lost it, whatever captured the model."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest
import torch
from modules import Op
from torch import Tensor
from torch.export import Dim

from exportlab import to_onnx
from fx2onnx.errors import FrozenDimension

X = torch.randn(4, 6)
CAPTURES = ("run", "torch.export")


def limits_of(function: Any, *args: Tensor, shapes: Any, accepted: tuple[str, ...], capture: str) -> tuple[str, ...]:
    program = to_onnx(Op(function), args, dynamic_shapes=(shapes,), accept_ranges=accepted, capture=capture)
    found = program.report.limits
    assert json.loads(program.model.metadata_props.get("fx2onnx.limits", "[]")) == list(found)
    return found


def longer_by_another_rule(x: Tensor) -> Tensor:
    """A test whose one side the example takes."""
    return x * 3 if x.shape[0] > 40 else x * 2


def split_in_two(x: Tensor) -> Tensor:
    """As many parts as the example has."""
    a, b = x.split(2)
    return a + b


def as_a_number(x: Tensor) -> Tensor:
    """A test that holds for one size alone."""
    return x * 2 if x.shape[0] == 4 else x.sum(0, keepdim=True)


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_side_of_a_test_that_a_file_has_is_named_with_its_line(capture: str) -> None:
    (found,) = limits_of(longer_by_another_rule, X, shapes=({0: "rows"},), accepted=("rows",), capture=capture)
    line, _, told = found.partition(": ")
    assert "test_accepted_ranges.py:" in line
    assert line.endswith("longer_by_another_rule")
    assert told == "only rows <= 40 is exported; allowed by accept_ranges; the exported model does not check it"


def test_a_number_of_parts_is_named() -> None:
    found = limits_of(split_in_two, X, shapes=({0: "rows"},), accepted=("rows",), capture="auto")
    assert any("rows" in line and "allowed by accept_ranges" in line for line in found), found


def test_one_size_is_named() -> None:
    found = limits_of(as_a_number, X, shapes=({0: "rows"},), accepted=("rows",), capture="auto")
    assert any("allowed by accept_ranges" in line and "4" in line for line in found), found


def test_a_test_of_torchs_own_is_named_where_the_model_has_none() -> None:
    table = torch.randn(32, 6)
    found = limits_of(lambda x: x + table[: x.shape[0]], X, shapes=({0: "rows"},), accepted=("rows",), capture="torch.export")
    assert found == (
        "a PyTorch operator: only rows == min(32, rows) is exported; allowed by accept_ranges; the exported model does not check it",
    )


@pytest.mark.parametrize("capture", CAPTURES)
def test_nothing_is_said_where_nothing_was_lost(capture: str) -> None:
    assert limits_of(torch.relu, X, shapes=({0: "rows"},), accepted=("rows",), capture=capture) == ()


def added_to_four_rows(x: Tensor) -> Tensor:
    """A sum that fixes the number of rows."""
    return x + torch.ones(4, 6)


@pytest.mark.parametrize("capture", ["torch.export", "auto"])
@pytest.mark.parametrize("rows", ["rows", Dim.DYNAMIC, Dim.DYNAMIC(max=64)], ids=["name", "DYNAMIC", "DYNAMIC with an end"])
@pytest.mark.parametrize("function", [split_in_two, added_to_four_rows])
def test_passing_the_accept_ranges_that_an_error_advises_exports_the_model(function: Any, rows: Any, capture: str) -> None:
    with pytest.raises(FrozenDimension) as refused:
        limits_of(function, X, shapes=({0: rows},), accepted=(), capture=capture)
    advice = re.search(r"accept_ranges=(\(.+?,\))", str(refused.value))
    assert advice is not None
    assert limits_of(function, X, shapes=({0: rows},), accepted=ast.literal_eval(advice[1]), capture=capture)


def test_an_axis_without_a_name_that_is_not_accepted_still_has_to_move() -> None:
    with pytest.raises(FrozenDimension, match=r'"axis 1 of args\[0\]" was asked to be dynamic'):
        limits_of(added_to_four_rows, X, shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},), accepted=("axis 0 of args[0]",), capture="auto")
