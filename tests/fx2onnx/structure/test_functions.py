"""Which module calls become calls of one function, and which do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from stacks import ALLOW_GROWN_BUFFERS, Block, X, exported, stack
from torch import nn

from exportlab import to_onnx, verify
from fx2onnx.program import Program

CAPTURES = pytest.mark.parametrize("capture", ["run", "torch.export"])
FURTHER = [(X,), (ALLOW_GROWN_BUFFERS,), (ALLOW_GROWN_BUFFERS.abs(),), (-ALLOW_GROWN_BUFFERS.abs(),)]


class Model(nn.Module):
    """Three blocks of one class, called as a test calls them."""

    def __init__(self, kind: type[nn.Module], call: Any) -> None:
        super().__init__()
        self.a, self.b, self.c, self.call = kind(), kind(), kind(), call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.call(self, x * 1)
        return result


def checked(kind: type[nn.Module], call: Any, capture: str, functions: Any = None) -> Program:
    """The export with functions for blocks of this class, verified at sizes and values that it never saw."""
    torch.manual_seed(0)
    model = Model(kind, call).eval()
    program = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},), functions=functions or (kind,), capture=capture)
    verify(program, model, FURTHER).check()
    return program


def in_a_row(model: Model, x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = model.c(model.b(model.a(x)))
    return result


class Writing(Block):
    """Writes into its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x[:, :3] += 1
        return super().forward(x)


class Passing(Block):
    """Returns a view of its argument, and a result."""

    def forward(self, x: torch.Tensor) -> Any:
        return x[:, 2:], super().forward(x)


class WritingInside(Block):
    """Writes into views of what it computes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        y[:, :3] += 1
        y[:, 4:].mul_(2)
        return y.relu_()


class Copying(nn.Module):
    """Returns a copy of its argument, or itself."""

    def forward(self, x: torch.Tensor) -> Any:
        return x.clone(), x.to(x.dtype)


class Testing(Block):
    """Tests what it computes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return y * 2 if y.sum() > 0 else torch.sin(y) - x


class Counting(Block):
    """Reads a number from values, and returns a tensor whose size values decide."""

    def forward(self, x: torch.Tensor) -> Any:
        y = self.first(x)
        return y, y[y > 0], (x > 0).nonzero().shape[0]


def add_what_passes(model: Model, x: torch.Tensor) -> torch.Tensor:
    view, y = model.a(x)
    other, z = model.b(y)
    result: torch.Tensor = view + other + z[:, 2:]
    return result


def write_into_what_passes(model: Model, x: torch.Tensor) -> torch.Tensor:
    view, y = model.a(x)
    view.add_(1)
    other, z = model.b(x)
    other.mul_(2)
    return x + y + z


def write_into_copies(model: Model, x: torch.Tensor) -> torch.Tensor:
    copy, same = model.a(x)
    same.add_(1)
    other, _ = model.b(copy)
    copy.mul_(3)
    return x + copy + 2 * other


def write_into_results(model: Model, x: torch.Tensor) -> torch.Tensor:
    y = model.a(x)
    y.add_(1)
    z = model.b(y)
    z += y
    return z


def add_counts(model: Model, x: torch.Tensor) -> torch.Tensor:
    y, positive, number = model.a(x)
    z, others, further = model.b(x)
    return y * number + z * further + positive.sum() + positive.shape[0] + others.shape[0]


def choose(model: Model, x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = model.c(model.a(x) if x.sum() > 0 else model.b(x))
    return result


def repeat_by_rows(model: Model, x: torch.Tensor) -> torch.Tensor:
    state = torch.zeros(8)
    for row in range(x.shape[0]):
        state = model.a(state + x[row])
    result: torch.Tensor = model.b(x + state)
    return result


@CAPTURES
def test_a_block_that_writes_into_its_arguments_is_no_function(capture: str) -> None:
    report = checked(Writing, in_a_row, capture).report
    assert not report.functions
    assert set(report.not_shared) == {"a", "b", "c"}
    assert "writes into its arguments" in report.not_shared["a"]


@CAPTURES
def test_results_that_show_memory_of_arguments_are_returned_unless_the_model_writes(capture: str) -> None:
    assert checked(Passing, add_what_passes, capture).report.functions == {"Passing": 2}
    report = checked(Passing, write_into_what_passes, capture).report
    assert not report.functions
    assert "share memory" in report.not_shared["b"]


@CAPTURES
@pytest.mark.parametrize(
    ("kind", "call", "calls"),
    [(WritingInside, in_a_row, 3), (Block, write_into_results, 2), (Copying, write_into_copies, 2), (Counting, add_counts, 2)],
)
def test_blocks_whose_memory_and_numbers_are_used_outside_are_functions(kind: type[nn.Module], call: Any, calls: int, capture: str) -> None:
    report = checked(kind, call, capture).report
    assert report.functions == {kind.__name__: calls}
    assert report.not_shared == {}


def test_a_branch_on_values_is_inside_a_function() -> None:
    program = checked(Testing, in_a_row, "run")
    assert program.report.functions == {"Testing": 3}
    assert not [node for node in program.model.graph if node.op_type == "If"]


def test_blocks_are_called_in_branches_and_loops() -> None:
    chosen = checked(Block, choose, "run")
    assert chosen.report.functions == {"Block": 2}
    repeated = checked(Block, repeat_by_rows, "run")
    [loop] = [node for node in repeated.model.graph if node.op_type == "Loop"]
    assert [node.op_type for node in loop.attributes["body"].as_graph() if node.domain] == ["Block"]
    assert repeated.report.functions == {"Block": 1, "Block_2": 1}


def test_a_call_that_is_divided_by_a_branch_is_no_function() -> None:
    class Sized(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            return y * 2 if x.shape[0] > 4 else torch.sin(y)

    report = checked(Sized, in_a_row, "run").report
    assert report.not_shared["a"] == "a test in it decides what other modules compute"
    assert report.functions == {"Sized": 2, "Sized_2": 2}


def test_a_block_that_is_called_inside_another_one_by_a_callback() -> None:
    class Around(Block):
        def forward(self, x: torch.Tensor, inner: Any) -> torch.Tensor:
            return self.second(inner(self.first(x)))

    report = checked(Around, lambda model, x: model.a(x, model.b.first), "run", (Around, nn.Linear)).report
    assert report.functions == {"Around": 1, "Linear": 3}


@CAPTURES
def test_arguments_that_differ_are_holes_or_functions_of_their_own(capture: str) -> None:
    def call(model: Model, x: torch.Tensor) -> torch.Tensor:
        x = model.b(model.a(x))
        result: torch.Tensor = model.c(torch.cat([x, x]))
        return result

    report = checked(Block, call, capture).report
    assert report.shared == {"b": "a"}
    assert "a torch.float32 tensor of shape [2*batch,8], not a torch.float32 tensor of shape [batch,8]" in report.not_shared["c"]


@CAPTURES
def test_one_block_called_three_times_is_three_calls(capture: str) -> None:
    program = checked(Block, lambda model, x: model.a(model.a(model.a(x))), capture)
    assert [node.op_type for node in program.model.graph if node.domain] == ["Block"] * 3


def test_a_captured_program_has_functions_for_a_module_under_several_paths() -> None:
    model = nn.Sequential(*[Block()] * 3).eval()
    captured = torch.export.export(model, (X,), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=True)
    program = to_onnx(captured, functions=(Block,))
    verify(program, model, FURTHER[:2]).check()
    assert program.report.functions == {"Block": 3}


def test_the_model_is_left_as_it_was() -> None:
    model = stack()
    before = [(dict(vars(module)).keys(), type(module)) for module in model.modules()]
    exported(model)
    assert [(dict(vars(module)).keys(), type(module)) for module in model.modules()] == before
