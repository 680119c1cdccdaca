"""`to_onnx` as a caller sees it: arguments, names, opsets, writes, what it leaves alone."""

from __future__ import annotations

import copy
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
import torch
from modules import Op
from torch import nn
from torch.export import Dim

from content import zoo
from exportlab import to_onnx, verify
from fx2onnx import NEWEST_OPSET, OLDEST_OPSET
from fx2onnx.errors import MutationError, NameCollision
from fx2onnx.state import initial_state

X = torch.randn(4, 3)
BATCH = ({0: "batch"},)


class Scaled(nn.Module):
    """A layer and a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 5)

    def forward(self, x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return torch.relu(self.linear(x)) * factor


class Counter(nn.Module):
    """Changes a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x * self.calls


def any_batch(count: int = 1) -> dict[str, Any]:
    return {"args": tuple({0: "batch"} for _ in range(count))}


def test_it_returns_what_torch_returns() -> None:
    program = to_onnx(Scaled(), (X,), dynamic_shapes=BATCH)
    assert isinstance(program, torch.onnx.ONNXProgram)
    assert isinstance(program.model_proto, onnx.ModelProto)
    assert program.exported_program.graph_signature.user_inputs == ("x",)
    assert program(X)[0].shape == (4, 5)
    onnx.checker.check_model(program.model_proto, full_check=True)


def test_an_exported_program_is_taken_too() -> None:
    module = Scaled()
    captured = torch.export.export(module, (X,), dynamic_shapes=({0: Dim("batch")},))
    verify(to_onnx(captured), module, [(X,), (torch.randn(7, 3),)]).check()


def test_a_program_after_decompositions_is_taken_too() -> None:
    module = Scaled()
    captured = torch.export.export(module, (X,), dynamic_shapes=({0: Dim("batch")},)).run_decompositions()
    verify(to_onnx(captured), module, [(X,), (torch.randn(7, 3),)]).check()


@pytest.mark.parametrize("opset", [OLDEST_OPSET, 21, 23, NEWEST_OPSET])
def test_every_opset_is_written_natively(opset: int) -> None:
    program = to_onnx(Scaled(), (X,), dynamic_shapes=BATCH, opset_version=opset)
    assert program.model.opset_imports[""] == opset
    assert program(X)[0].shape == (4, 5)


def test_the_newest_opset_is_the_newest_that_onnx_runtime_of_the_stored_kernels_runs() -> None:
    import onnxruntime

    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [1])],
        [onnx.helper.make_tensor_value_info("y", 1, [1])],
    )

    def load(opset: int) -> None:
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
        onnxruntime.InferenceSession(model.SerializeToString())

    load(NEWEST_OPSET)
    table = files("fx2onnx.ir").joinpath("cpu_kernels.txt").read_text(encoding="utf-8")
    if f"onnxruntime {onnxruntime.__version__}," in table.splitlines()[0]:
        with pytest.raises(Exception, match="opset"):
            load(NEWEST_OPSET + 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"opset_version": 17}, "opset_version=17: to_onnx supports opsets 18 to 26"),
        ({"opset_version": 27}, "opset_version=27"),
        ({"mutations": "drop"}, 'pass "error" or "outputs"'),
        ({"functions": ("BertLayer",)}, "sequence of module classes"),
        ({"accept_ranges": ("rows",)}, "dynamic_shapes has no dimension of that name"),
        ({"args": [X]}, r"write \(x,\) for one"),
        ({"model": torch.relu}, "torch.nn.Module or an ExportedProgram"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_arguments_are_refused_in_one_line(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        to_onnx(**({"model": Scaled(), "args": (X,)} | arguments))


def test_names_are_as_asked_and_as_torch_gives_them() -> None:
    program = to_onnx(Scaled(), (X,), input_names=["pixels"], output_names=["scores"], dynamic_shapes=BATCH)
    assert [value.name for value in program.model.graph.inputs] == ["pixels"]
    assert [value.name for value in program.model.graph.outputs] == ["scores"]
    assert str(program.model.graph.inputs[0].shape) == "[batch,3]"
    assert {"linear.weight", "linear.bias"} <= set(program.model.graph.initializers)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"input_names": ["x", "y"]}, "input_names has 2 names, but the model has 1 inputs: x"),
        ({"output_names": ["a", "b"]}, "output_names has 2 names, but the model has 1 outputs"),
        ({"input_names": ["a"], "output_names": ["a"]}, "a: used more than once"),
    ],
)
def test_names_that_collide_or_do_not_match_are_refused(names: dict[str, Any], said: str) -> None:
    with pytest.raises(NameCollision, match=said):
        to_onnx(Scaled(), (X,), **names)


def test_a_name_that_a_weight_or_a_node_has_may_be_asked_for() -> None:
    program = to_onnx(Scaled(), (X,), input_names=["linear.weight"], output_names=["relu"])
    assert [value.name for value in (*program.model.graph.inputs, *program.model.graph.outputs)] == ["linear.weight", "relu"]
    onnx.checker.check_model(program.model_proto)
    assert program(X)[0].shape == (4, 5)


def test_one_tensor_given_twice_is_two_inputs() -> None:
    program = to_onnx(Op(lambda x, y: x - 2 * y), (X, X), dynamic_shapes=any_batch(2))
    verify(program, Op(lambda x, y: x - 2 * y), [(X, X), (torch.randn(5, 3), torch.randn(5, 3))]).check()


def test_outputs_that_are_inputs_weights_or_equal_are_values_of_their_own() -> None:
    module = Op(lambda x: (x, x, x + 1, x + 1, torch.ones(2)))
    verify(to_onnx(module, (X,)), module, [(X,)]).check()


def test_a_changed_buffer_is_refused_by_name() -> None:
    with pytest.raises(MutationError, match=r'the model changes calls, .* mutations="outputs"'):
        to_onnx(Counter(), (X,))


def test_a_changed_input_is_refused_by_name() -> None:
    with pytest.raises(MutationError, match="the model changes args_0"):
        to_onnx(Op(lambda x: x.add_(1)), (X.clone(),), capture="torch.export")


def test_the_captured_program_is_one_of_torch_where_that_captured_it() -> None:
    program = to_onnx(Scaled(), (X,), dynamic_shapes=BATCH, capture="torch.export")
    assert isinstance(program.exported_program, torch.export.ExportedProgram)


def test_a_changed_buffer_is_an_input_and_its_new_value_an_output_named_after_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = to_onnx(Counter(), (X,), tmp_path / "model.onnx", mutations="outputs")
    assert program.report.mutations == ("calls",)
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [value.name for value in session.get_inputs()] == ["x", "calls"]
    assert [value.name for value in session.get_outputs()][1:] == ["calls_new"]
    state = {name: value.numpy() for name, value in program.report.state.items()}
    for calls in (1, 2, 3):
        y, *new = session.run(None, {"x": X.numpy(), **state})
        state = dict(zip(state, new, strict=True))
        assert state["calls"].item() == calls
        assert torch.equal(torch.from_numpy(y), calls * X)
    assert capfd.readouterr().err == ""


def test_a_file_says_what_its_state_is_and_what_the_first_call_gets(tmp_path: Path) -> None:
    to_onnx(Counter(), (X,), tmp_path / "model.onnx", mutations="outputs", output_names=["y", "calls_now"])
    described = json.loads(onnx.load(tmp_path / "model.onnx").metadata_props[0].value)
    assert described == {"calls": {"new": "calls_now", "dtype": "float32", "shape": [1], "values": 0.0}}
    assert initial_state(ir.load(tmp_path / "model.onnx")) == {"calls": torch.zeros(1)}


def test_the_state_at_the_export_stays_when_the_model_goes_on() -> None:
    model = Counter()
    program = to_onnx(model, (X,), mutations="outputs")
    model(X)
    assert program.report.state["calls"].item() == 0
    assert program(X)[1].item() == 1
    assert program(X, torch.tensor([5.0]))[1].item() == 6


def test_the_lines_on_the_page_carry_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs/to_onnx_arguments.md").read_text(encoding="utf-8")
    section = page.split("## Export a stateful model")[1].split("\n## ")[0]
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, names)
    eager = names["Running"]()
    eager(names["x"])
    assert list(names["state"]) == ["running"]
    assert not torch.equal(torch.from_numpy(names["state"]["running"]), eager.running)
    for _ in range(2):
        again = names["Running"]()
        again.running.copy_(torch.from_numpy(names["state"]["running"]))
        y, new = names["session"].run(None, {"x": names["x"].numpy(), **names["state"]})
        torch.testing.assert_close((torch.from_numpy(y), torch.from_numpy(new)), (again(names["x"]), again.running))
        names["state"] = {"running": new}


class Learning(nn.Module):
    """Multiplies by a matrix that it changes afterwards, and keeps the last rows without looking at them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.eye(3))
        self.register_buffer("last", torch.arange(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.linear(x, self.matrix)
        self.matrix.add_(1)
        self.last.copy_(x[-1])
        return y


def test_state_is_read_where_a_weight_would_be_stored_transposed_and_is_an_input_where_nobody_reads_it() -> None:
    program = to_onnx(Learning(), (X,), mutations="outputs", optimize=True)
    assert list(program.report.state) == ["matrix", "last"]
    y, matrix, last = program(X)
    y, matrix, last = program(X, matrix, last)
    eager = Learning()
    eager(X)
    torch.testing.assert_close((y, matrix, last), (eager(X), eager.matrix, eager.last))


def test_a_translation_of_the_callers_own() -> None:
    table = {torch.ops.aten.relu.default: lambda g, x: g.Max(x, 0.5)}
    program = to_onnx(Scaled(), (X,), custom_translation_table=table)
    assert program.report.sources["custom"] == 1
    assert any(node.op_type == "Max" for node in program.model.graph)


def test_two_exports_give_the_same_bytes() -> None:
    built = zoo.get("layer_norm_softmax").build()

    def exported() -> bytes:
        program = to_onnx(built.module, built.samples[0].args, dynamic_shapes=built.dynamic_shapes)
        return program.model_proto.SerializeToString(deterministic=True)

    assert exported() == exported()


def test_an_export_that_fails_leaves_the_model_as_it_was() -> None:
    module = Counter()
    before = copy.deepcopy(module.__dict__)
    with pytest.raises(MutationError):
        to_onnx(module, (X,))
    assert module.__dict__.keys() == before.keys()
    assert module.calls.item() == 0
    assert module(X).equal(X)


def test_weights_are_not_copied() -> None:
    module = Scaled()
    program = to_onnx(module, (X,))
    held = program.model.graph.initializers["linear.weight"].const_value.raw
    assert held.data_ptr() == module.linear.weight.data_ptr()
