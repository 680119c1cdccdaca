"""Blocks as local functions: what calls them, how often they are stored, and that they are right."""

from __future__ import annotations

import onnx
import onnxruntime
import onnxscript
import torch
from onnx import inliner
from onnxscript import opset18
from stacks import ALLOW_GROWN_BUFFERS, Block, Stack, X, exported, stack
from torch import nn

from exportlab import to_onnx
from fx2onnx.program import Program


def functions_of(program: Program) -> dict[str, int]:
    return {function.name: len(function) for function in program.model.functions.values()}


def test_equal_blocks_are_one_function_captured_once() -> None:
    program = exported(stack())
    assert list(functions_of(program)) == ["Block"]
    assert [node.op_type for node in program.model.graph] == ["Gemm"] + ["Block"] * 4
    assert program.report.functions == {"Block": 4}
    assert program.report.shared == {f"blocks.{i}": "blocks.0" for i in (1, 2, 3)}
    assert program.report.not_shared == {}


custom_domain = onnxscript.values.Opset("exportlab.test", 1)


@onnxscript.script(custom_domain)
def from_above(x):  # noqa: ANN001, ANN201 - onnxscript reads it
    """max(x, 0), as a function of its own."""
    return opset18.Relu(x)


def test_a_function_of_onnxscript_before_a_block_is_one_of_the_file_too() -> None:
    model = nn.Sequential(nn.ReLU(), Block()).eval()
    table = {torch.ops.aten.relu.default: from_above}
    program = to_onnx(model, (X,), functions=(Block,), custom_translation_table=table)
    assert {"from_above", "Block"} == set(functions_of(program))


def test_it_gives_what_the_plain_export_gives() -> None:
    model = stack()
    plain = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},))
    assert torch.equal(exported(model)(ALLOW_GROWN_BUFFERS)[0], plain(ALLOW_GROWN_BUFFERS)[0])


def test_the_inliner_makes_the_plain_graph_of_it() -> None:
    program = exported(stack())
    inlined = inliner.inline_local_functions(program.model_proto)
    assert not inlined.functions
    assert len(inlined.graph.node) > 4
    onnx.checker.check_model(inlined)
    session = onnxruntime.InferenceSession(inlined.SerializeToString())
    assert torch.allclose(torch.from_numpy(session.run(None, {"x": X.numpy()})[0]), program(X)[0])


def test_a_weight_shared_by_two_blocks_is_stored_once() -> None:
    model = stack()
    model.blocks[2].first.weight = model.blocks[1].first.weight
    program = exported(model)
    assert len(program.report.shared) == 3
    assert sum(name.endswith("first.weight") or name.endswith("first.weight/T") for name in program.model.graph.initializers) == 3


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
