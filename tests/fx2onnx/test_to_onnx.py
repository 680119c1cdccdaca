"""`to_onnx` as a caller sees it: arguments, names, errors, writes, what it leaves alone. Not here: operators, control flow, blocks."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn
from torch.export import Dim

from exportlab import to_onnx, verify, zoo
from fx2onnx import NEWEST_OPSET, OLDEST_OPSET
from fx2onnx.errors import CaptureError, FrozenDimension, MutationError, NameCollision, UnsupportedOps, shown_path

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


class Op(nn.Module):
    """A module of one function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def any_batch(count: int = 1) -> dict[str, Any]:
    return {"args": tuple({0: "batch"} for _ in range(count))}


def test_it_returns_what_torch_returns() -> None:
    program = to_onnx(Scaled(), (X,), dynamic_shapes=BATCH)
    assert isinstance(program, torch.onnx.ONNXProgram)
    assert isinstance(program.model_proto, onnx.ModelProto)
    assert isinstance(program.exported_program, torch.export.ExportedProgram)
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


def test_the_newest_opset_is_the_newest_that_onnx_runtime_runs() -> None:
    import onnxruntime

    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [1])],
        [onnx.helper.make_tensor_value_info("y", 1, [1])],
    )
    newer = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", NEWEST_OPSET + 1)], ir_version=10)
    with pytest.raises(Exception, match="opset"):
        onnxruntime.InferenceSession(newer.SerializeToString())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"opset_version": 17}, "opset_version=17: to_onnx writes 18 to 26"),
        ({"opset_version": 27}, "opset_version=27"),
        ({"mutations": "drop"}, 'pass "error" or "outputs"'),
        ({"functions": ("BertLayer",)}, "sequence of module classes"),
        ({"functions": True, "strict": True}, "strict=False"),
        ({"accept_ranges": ("rows",)}, "dynamic_shapes has no such axis"),
        ({"args": X}, r"write \(x,\) for one"),
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
        ({"input_names": ["a"], "output_names": ["a"]}, "a: asked for more than once"),
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


ASKED = '"batch" was asked to be dynamic but '
FROZEN = {
    "a loop over the rows": (lambda x: sum(row.sin() for row in x), ASKED + r"is the constant 4 after tests/fx2onnx/test_to_onnx\.py:\d+"),
    "a branch on the size": (lambda x: x * 2 if x.shape[0] > 3 else x, ASKED + r"only batch > 3 .* tests/fx2onnx/test_to_onnx\.py:\d+"),
    "a size as a number": (lambda x: x if int(0.5 * x.shape[0]) == 2 else x + 1, ASKED + r"only math\.trunc\(0\.5\*float\(batch\)\) == 2"),
}


@pytest.mark.parametrize("name", FROZEN)
def test_a_frozen_dimension_is_refused_with_its_name_and_line(name: str) -> None:
    function, said = FROZEN[name]
    with pytest.raises(FrozenDimension, match=said):
        to_onnx(Op(function), (X,), dynamic_shapes=any_batch())


def test_a_test_for_one_row_is_refused_where_the_caller_wrote_it() -> None:
    with pytest.raises(FrozenDimension, match="only batch != 1 is exported"):
        to_onnx(Op(lambda x: x * 3 if x.shape[0] == 1 else x), (X,), dynamic_shapes=any_batch())


def test_code_without_a_file_is_watched_as_well() -> None:
    namespace: dict[str, Any] = {"nn": nn}
    exec("class Branching(nn.Module):\n    def forward(self, x):\n        return x if x.shape[0] > 3 else -x", namespace)
    with pytest.raises(FrozenDimension, match="only batch > 3 is exported: the test at a forward without a file"):
        to_onnx(namespace["Branching"](), (X,), dynamic_shapes=BATCH)


def test_a_frozen_dimension_can_be_accepted() -> None:
    function, _ = FROZEN["a branch on the size"]
    program = to_onnx(Op(function), (X,), dynamic_shapes=any_batch(), accept_ranges=("batch",))
    verify(program, Op(function), [(X,), (torch.randn(9, 3),)]).check()


def test_two_names_for_sizes_that_must_be_equal_are_refused() -> None:
    shapes = {"args": ({0: "rows"}, {0: "others"})}
    with pytest.raises(FrozenDimension, match=r'"rows" .* made it equal to "others": .*accept_ranges=\("rows", "others"\)'):
        to_onnx(Op(torch.add), (X, X + 1), dynamic_shapes=shapes)


def test_shapes_that_do_not_fit_the_arguments_are_refused() -> None:
    with pytest.raises(CaptureError, match="dynamic_shapes does not fit the arguments"):
        to_onnx(Scaled(), (X,), dynamic_shapes=({0: "batch"}, {0: "batch"}))


def test_what_torch_export_refuses_is_said_with_its_reason() -> None:
    with pytest.raises(CaptureError, match=r"torch\.export refuses the model: .*data-dependent"):
        to_onnx(Op(lambda x: x + 1 if x.sum() > 0 else x), (X,))


def test_a_changed_buffer_is_refused_by_name() -> None:
    with pytest.raises(MutationError, match=r'the model changes calls, .* mutations="outputs"'):
        to_onnx(Counter(), (X,))


def test_a_changed_input_is_refused_by_name() -> None:
    with pytest.raises(MutationError, match="the model changes args_0"):
        to_onnx(Op(lambda x: x.add_(1)), (X.clone(),))


def test_a_changed_buffer_becomes_an_output_and_an_input_with_a_default() -> None:
    program = to_onnx(Counter(), (X,), mutations="outputs", output_names=["y", "calls_now"])
    assert program.report.mutations == ("calls",)
    import onnxruntime

    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    _, once = session.run(None, {"x": X.numpy()})
    y, twice = session.run(None, {"x": X.numpy(), "calls": once})
    assert (once.item(), twice.item()) == (1, 2)
    assert torch.equal(torch.from_numpy(y), 2 * X)


def test_unsupported_ops_are_listed_at_once_with_lines() -> None:
    module = Op(lambda x: torch.linalg.svdvals(x) + torch.linalg.eigvalsh(x.T @ x))
    with pytest.raises(UnsupportedOps) as caught:
        to_onnx(module, (X,), fallback=False)
    text = str(caught.value)
    assert "aten.linalg_svdvals.default" in text
    assert "aten.linalg_eigvalsh.default" in text
    assert "test_to_onnx.py" in text
    assert "custom_translation_table" in text


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


def test_a_large_model_is_saved_beside_its_data(tmp_path: Path) -> None:
    module = Scaled()
    program = to_onnx(module, (X,))
    program.save(tmp_path / "model.onnx", external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    onnx.checker.check_model(str(tmp_path / "model.onnx"))


def test_a_save_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnx_ir

    program = to_onnx(Scaled(), (X,))

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(onnx_ir, "save", full)
    with pytest.raises(OSError, match="no space left"):
        program.save(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_weights_are_not_copied() -> None:
    module = Scaled()
    program = to_onnx(module, (X,))
    held = program.model.graph.initializers["linear.weight"].const_value.raw
    assert held.data_ptr() == module.linear.weight.data_ptr()


def test_a_weight_read_in_two_ways_is_stored_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embedding(ids))

    module, ids = Tied(), torch.tensor([[1, 2, 3]])
    program = to_onnx(module, (ids,))
    verify(program, module, [(ids,)]).check()
    assert len(program.model.graph.initializers) == 1


def test_a_batch_norm_becomes_part_of_the_convolution() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    module[1].running_mean.normal_()
    x = torch.randn(2, 3, 8, 8)
    program = to_onnx(module, (x,), dynamic_shapes=BATCH)
    assert [node.op_type for node in program.model.graph] == ["Conv"]
    verify(program, module, [(x,), (torch.randn(3, 3, 8, 8),)]).check()


def test_a_line_of_a_library_is_named_by_its_package() -> None:
    assert shown_path(str(Path(torch.__file__).parents[1] / "transformers/models/vit.py")) == "transformers/models/vit.py"
    assert shown_path(str(Path.cwd() / "mymodel.py")) == "mymodel.py"
    assert shown_path("/elsewhere/site-packages/timm/models/vit.py") == "timm/models/vit.py"
    assert shown_path("/elsewhere/mymodel.py") == "/elsewhere/mymodel.py"
