"""What a program of torch.export checks and a file does not: the report and the file name it, by the line."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from modules import Op
from torch import Tensor, nn
from torch.export import Dim

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError

X = torch.randn(4, 3)


def limits_of(function: Any, *args: Tensor) -> tuple[str, ...]:
    """What the report says of a function, captured by torch.export; the batch of its first argument moves."""
    program = to_onnx(Op(function), args, dynamic_shapes=(({0: "batch"}, *[{}] * (len(args) - 1)),), capture="torch.export")
    found = program.report.limits
    assert json.loads(program.model.metadata_props.get("fx2onnx.limits", "[]")) == list(found)
    return found


def first_rows(x: Tensor, count: Tensor) -> Tensor:
    """So many rows as a value says."""
    n = count.item()
    torch._check(n >= 2)
    torch._check(n <= x.shape[0])
    return x[:n].sum(0)


def test_what_is_checked_of_a_number_that_is_read_is_a_limit() -> None:
    (found,) = limits_of(first_rows, X, torch.tensor(3))
    line, _, told = found.partition(": ")
    assert line.endswith(" in forward")
    assert told == "torch checks that u0 >= 2 and u0 <= batch; the exported model does not"


def check_all(x: Tensor) -> Tensor:
    """A check of a whole tensor, as libraries write it for compilers."""
    torch._check_tensor_all(x.isfinite())
    return x * 2


def check_all_and_say(x: Tensor) -> Tensor:
    """The same in another way, with a message."""
    torch._assert_async(x.isfinite().all(), "numbers that are none")
    return x * 2


@pytest.mark.parametrize(
    ("function", "told"),
    [(check_all, "u0, which is read from a tensor there, is true or 1"), (check_all_and_say, "a tensor is true (numbers that are none)")],
)
def test_a_check_of_a_tensor_is_a_limit(function: Any, told: str) -> None:
    (found,) = limits_of(function, X)
    assert found.endswith(f"torch checks that {told}; the exported model does not")
    program = to_onnx(Op(function), (X,), dynamic_shapes=(({0: "batch"},),), capture="torch.export")
    assert [node.op_type for node in program.model.graph] == ["Mul"]


def test_a_check_of_a_tensor_is_a_limit_of_runs_too() -> None:
    program = to_onnx(Op(check_all), (X,), dynamic_shapes=(({0: "batch"},),), capture="run")
    (found,) = program.report.limits
    assert "in check_all: RuntimeError" in found


def test_the_result_of_such_a_check_is_computed_where_it_is_used() -> None:
    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch._is_all_true(x > 0), torch._is_any_true(x > 0)

    module, samples = Op(both), [(X,), (X.abs() + 1,), (-X.abs(),), (X[:0],)]
    verify(to_onnx(module, (X,), dynamic_shapes=(({0: "batch"},),), fallback=False), module, samples).check()


def test_what_holds_for_every_size_is_no_limit() -> None:
    assert limits_of(lambda x: x[(x.sum(1) > 0).nonzero().squeeze(1)], X) == ()


def test_a_program_that_was_captured_before_has_limits_as_well() -> None:
    exported = torch.export.export(Op(check_all), (X,))
    (found,) = to_onnx(exported).report.limits
    assert "is true or 1" in found


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_the_ends_of_a_dim_are_told(capture: str) -> None:
    shapes = ({0: Dim("rows", min=2, max=64), 1: Dim("columns")},)
    found = to_onnx(nn.ReLU(), (torch.randn(6, 3),), dynamic_shapes=shapes, capture=capture).report.limits
    assert found == ('dynamic_shapes declares that "rows" is 2 to 64; the exported model does not check this',)


def test_an_example_beyond_the_ends_of_its_dim_is_refused() -> None:
    with pytest.raises(CaptureError, match="70 not in range"):
        to_onnx(nn.ReLU(), (torch.randn(70, 3),), dynamic_shapes=({0: Dim("rows", max=64)},))


def test_an_axis_of_an_entry_has_its_path_as_a_name() -> None:
    class Entries(nn.Module):
        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return batch["x"].sin()

    shapes = ({"x": {0: Dim.DYNAMIC(max=64)}},)
    (limit,) = to_onnx(Entries(), ({"x": X},), dynamic_shapes=shapes).report.limits
    assert limit.startswith("dynamic_shapes declares that \"axis 0 of batch['x']\" is at most 64")


def test_the_ends_of_a_captured_program_are_told() -> None:
    shapes = ({0: Dim("batch"), 1: Dim("rows", min=3, max=64)},)
    program = torch.export.export(nn.ReLU(), (torch.randn(2, 6),), dynamic_shapes=shapes)
    ends = "of at least 3 and at most 64; the exported model does not check this"
    assert to_onnx(program, dynamic_shapes=shapes).report.limits == (f'the program was captured for "rows" {ends}',)
    (unnamed,) = to_onnx(program).report.limits
    assert unnamed.endswith(ends)
