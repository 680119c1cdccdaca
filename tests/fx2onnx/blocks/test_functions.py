"""Blocks as local functions, equal ones captured once: what is shared, what is not and why, and that it is right. Not here: times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from onnx import inliner
from torch import nn

from exportlab import to_onnx, verify
from fx2onnx.program import Program

X, LONGER = torch.randn(3, 8), torch.randn(5, 8)


class Block(nn.Module):
    """Two layers, a factor, and an index that nobody reads."""

    def __init__(self, width: int = 8, index: int = 0) -> None:
        super().__init__()
        self.first = nn.Linear(8, width)
        self.second = nn.Linear(width, 8)
        self.factor = 1.0
        self.index = index

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(x))) * self.factor


class Stack(nn.Module):
    """A layer, then blocks."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x


def stack(count: int = 4) -> Stack:
    torch.manual_seed(0)
    return Stack([Block(index=index) for index in range(count)]).eval()


def exported(model: nn.Module, functions: Any = (Block,), **options: Any) -> Program:
    """The export, verified at a size it never saw."""
    program = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},), functions=functions, **options)
    verify(program, model, [(X,), (LONGER,), (torch.randn(1, 8),)]).check()
    return program


def functions_of(program: Program) -> dict[str, int]:
    return {function.name: len(function) for function in program.model.functions.values()}


def test_equal_blocks_are_one_function_captured_once() -> None:
    program = exported(stack())
    assert list(functions_of(program)) == ["Block"]
    assert [node.op_type for node in program.model.graph] == ["Gemm"] + ["Block"] * 4
    assert program.report.functions == {"Block": 4}
    assert program.report.shared == {f"blocks.{i}": "blocks.0" for i in (1, 2, 3)}
    assert program.report.not_shared == {}


def test_it_gives_what_the_plain_export_gives() -> None:
    model = stack()
    plain = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},))
    assert torch.equal(exported(model)(LONGER)[0], plain(LONGER)[0])


def test_the_inliner_makes_the_plain_graph_of_it() -> None:
    program = exported(stack())
    inlined = inliner.inline_local_functions(program.model_proto)
    assert not inlined.functions
    assert len(inlined.graph.node) > 4
    onnx.checker.check_model(inlined)
    session = onnxruntime.InferenceSession(inlined.SerializeToString())
    assert torch.allclose(torch.from_numpy(session.run(None, {"x": X.numpy()})[0]), program(X)[0])


def replaced(model: Stack) -> None:
    model.blocks[2] = Block(width=6)


def retuned(model: Stack) -> None:
    model.blocks[2].factor = 3.0


def hooked(model: Stack) -> None:
    model.blocks[2].register_forward_hook(lambda module, args, result: result + 1)


def hooked_inside(model: Stack) -> None:
    model.blocks[2].second.register_forward_pre_hook(lambda module, args: (args[0] + 1,))


def rewritten(model: Stack) -> None:
    model.blocks[2].forward = lambda x: x - 1


def reclassed(model: Stack) -> None:
    class Louder(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * 2

    model.blocks[2].__class__ = Louder


def without_bias(model: Stack) -> None:
    model.blocks[2].first = nn.Linear(8, 8, bias=False)


def tied_inside(model: Stack) -> None:
    model.blocks[2].second.weight = model.blocks[2].first.weight


def in_another_layout(model: Stack) -> None:
    block = model.blocks[2]
    block.first.weight = nn.Parameter(block.first.weight.detach().t().contiguous().t())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (replaced, "first.weight has another shape"),
        (retuned, "factor differs, and forward reads it"),
        (hooked, "has a hook"),
        (hooked_inside, "has a hook"),
        (rewritten, ""),
        (without_bias, "other parameters"),
        (tied_inside, "tied in another way"),
        (in_another_layout, "another shape, dtype or layout"),
        (reclassed, ""),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_block_that_differs_is_exported_right_and_not_shared(change: Callable[[Stack], None], reason: str) -> None:
    model = stack()
    change(model)
    report = exported(model.eval()).report
    assert "blocks.2" not in report.shared
    assert {"blocks.1", "blocks.3"} <= set(report.shared)
    assert reason in report.not_shared.get("blocks.2", "")


def test_a_weight_shared_by_two_blocks_is_stored_once() -> None:
    model = stack()
    model.blocks[2].first.weight = model.blocks[1].first.weight
    program = exported(model)
    assert len(program.report.shared) == 3
    assert sum(name.endswith("first.weight") or name.endswith("first.weight/T") for name in program.model.graph.initializers) == 3


def test_one_block_called_three_times_is_captured_once() -> None:
    block = Block()

    class Again(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = block

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.block(self.block(self.block(x)))

    program = exported(Again().eval())
    assert [node.op_type for node in program.model.graph] == ["Block"] * 3


class Writing(Block):
    """Writes into its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return super().forward(x)


class Passing(Block):
    """Returns a view of its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 8)


class Noting(Block):
    """Changes an attribute of its own, to the same at every call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows = x.shape[0]
        return super().forward(x)


class Note:
    """Something outside that blocks write on."""

    value: torch.Tensor | None = None


class Closing(Block):
    """Reads what the block before it noted, past its arguments."""

    note: Note

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.note.value = super().forward(x) + self.note.value
        return self.note.value * 1


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(Writing, "writes into its arguments"), (Passing, "shares memory"), (Noting, "changes its own attributes")],
)
def test_what_turns_out_to_be_no_block_is_captured_in_the_ordinary_way(kind: type, reason: str) -> None:
    class Prepared(Stack):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x * 1)

    model = Prepared([kind() for _ in range(3)]).eval()
    program = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},), functions=(kind,))
    assert reason in program.report.not_shared["blocks.0"]
    assert program.report.shared == {}
    verify(program, model, [(X,), (LONGER,)]).check()


def test_a_block_that_reads_past_its_arguments_is_not_shared() -> None:
    note = Note()

    class Remembering(Stack):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.note.value = x * 2
            result = super().forward(x)
            self.note.value = None
            return result

    model = Remembering([Closing() for _ in range(3)]).eval()
    for module in (model, *model.blocks):
        module.note = note
    program = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},), functions=(Closing,))
    assert program.report.shared == {}
    assert "not among its arguments" in program.report.not_shared["blocks.0"]
    verify(program, model, [(X,), (LONGER,)]).check()


def test_arguments_that_differ_are_captured_alone() -> None:
    class Widening(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Linear(8, 8)
            self.blocks = nn.ModuleList(Block() for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.blocks[0](self.stem(x))
            x = self.blocks[1](x)
            return self.blocks[2](torch.cat([x, x]))

    report = exported(Widening().eval()).report
    assert report.shared == {"blocks.1": "blocks.0"}
    assert "another shape, dtype or value" in report.not_shared["blocks.2"]


def test_a_size_that_no_argument_tells_is_passed_to_the_function() -> None:
    class Counted(nn.Module):
        def forward(self, x: torch.Tensor, rows: int) -> torch.Tensor:
            return x * rows

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Counted()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x.sum(0), x.shape[0])

    exported(Outer().eval(), functions=(Counted,))


def test_blocks_within_blocks() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = Block(), Block()

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            x = self.one(x)
            return self.two(x), {"between": x}

    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pairs = nn.ModuleList(Pair() for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for pair in self.pairs:
                x, further = pair(x)
                x = x + further["between"]
            return x

    program = exported(Pairs().eval(), functions=True)
    assert set(functions_of(program)) == {"Block", "Pair"}
    assert [node.op_type for node in program.model.graph if node.domain] == ["Pair"] * 3


def test_a_branch_inside_a_block() -> None:
    class Branching(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + self.first.bias, lambda x: x * 2, (x,))

    model = Stack([Branching() for _ in range(3)]).eval()
    program = exported(model, functions=(Branching,))
    assert list(functions_of(program)) == ["Branching"]


def test_the_model_is_left_as_it_was() -> None:
    model = stack()
    before = [(dict(vars(module)).keys(), type(module)) for module in model.modules()]
    exported(model)
    assert [(dict(vars(module)).keys(), type(module)) for module in model.modules()] == before
