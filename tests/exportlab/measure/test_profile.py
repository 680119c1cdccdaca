"""Where the time of a file goes: it adds up, the slow node is found by operator, line and module, and what is not known is said."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnx.numpy_helper
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from exportlab import export, profile
from exportlab.measure.profile import NoInputs, Profile, Refused, run
from exportlab.measure.profile.attribution import Origin
from exportlab.measure.profile.events import Run, Span, runs_of
from exportlab.measure.profile.output import WRITERS
from exportlab.measure.profile.result import MODEL, NO_LINE, NO_MODULE, NodeTime
from exportlab.measure.profile.run import assign_node_names
from exportlab.show.origin import placed_line

WIDTH = 384


class Planted(nn.Module):
    """Nearly all of its time is in one product."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = x @ self.weight  # slow
        return product[:, 0]


class Model(nn.Module):
    """A slow submodule, and a row that costs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.planted = Planted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        slow, row = self.planted(x), x[:, 0]
        y = row * 0.5 * (1 + torch.erf(row / 2**0.5))
        return torch.sigmoid(y) + slow


def exported(module: nn.Module, *args: torch.Tensor, exporter: str = "dynamo", **options: Any) -> Any:
    torch.manual_seed(0)
    return export(exporter, module.eval(), args, **options)


@pytest.fixture(scope="module")
def planted() -> Profile:
    file = exported(Model(), torch.randn(3, WIDTH, WIDTH), dynamic_shapes=({0: "batch"},))
    return profile(file, sizes={"batch": 2}, runs=5)


def test_the_planted_node_comes_first_by_operator_line_and_module(planted: Profile) -> None:
    assert planted.by_op()[0].name == "MatMul"
    assert planted.by_line()[0].name.partition("  ")[2] == "product = x @ self.weight  # slow"
    assert planted.by_module()[0].name == "planted, Planted"
    assert planted.by_module(depth=1)[0].name == "planted"


@pytest.mark.parametrize("groups", ["by_op", "by_line", "by_module", "by_node", "by_provider"])
def test_every_grouping_adds_up_to_the_whole(planted: Profile, groups: str) -> None:
    found = getattr(planted, groups)()
    assert sum(group.share for group in found) == pytest.approx(1)
    assert sum(group.nodes for group in found) == len(planted.nodes)
    for place, run_ in enumerate(planted.runs):
        own = sum(group.seconds[place] for group in found)
        assert own == pytest.approx(sum(span.own for span in run_.spans))
        assert own <= run_.seconds
    assert len(planted.runs) == 5


def test_a_node_that_was_fused_of_one_line_has_that_line(planted: Profile) -> None:
    (gelu,) = [node for node in planted.nodes if node.op == "Gelu"]
    assert gelu.name not in {node.name for node in planted.nodes if node.origin.of == 1}
    assert gelu.line.endswith("y = row * 0.5 * (1 + torch.erf(row / 2**0.5))")
    assert gelu.origin.of == 5
    assert gelu.module() == f"{MODEL}, Model"


class TwoLines(nn.Module):
    """Becomes one node."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x * 0.5
        return half * (1 + torch.erf(x / 2**0.5))


def test_what_was_fused_of_two_lines_is_given_to_none_of_them_alone() -> None:
    found = profile(exported(TwoLines(), torch.randn(3, 4)), runs=2)
    assert [node.op for node in found.nodes] == ["Gelu"]
    assert len(found.nodes[0].origin.lines) == 2
    assert found.by_line()[0].name.startswith("fused of ")
    assert found.unknown() == {"line": 0, "several": 1, "module": 0}
    assert "100% is in nodes fused from several lines" in str(found)


class Residual(nn.Module):
    """Its sum goes into the convolution before it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x))
        y = self.second(y)
        return torch.relu(x + y)


class Convnet(nn.Module):
    """Two blocks behind a stem."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.one, self.two = nn.Conv2d(3, 16, 3), Residual(), Residual()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(self.stem(x))).mean((2, 3))


def test_convolutions_whose_axes_were_moved_belong_to_their_own_blocks() -> None:
    found = profile(exported(Convnet(), torch.randn(1, 3, 12, 12)), runs=2)
    stem, first = ("return self.two(self.one(self.stem(x))).mean((2, 3))",), ("y = torch.relu(self.first(x))",)
    convolutions = [node for node in found.nodes if "Conv" in node.op]
    assert len(convolutions) == 5
    inside = [node.module(1) for node in convolutions]
    assert sorted(inside) == ["one", "one", "stem", "two", "two"]
    texts = sorted(tuple(sorted(line.partition("  ")[2] for line in node.origin.lines)) for node in convolutions)
    summed = ("return torch.relu(x + y)", "y = self.second(y)")
    assert {node.module(1) for node in found.nodes if node.op == "ReorderOutput"} <= {"two"}
    assert texts == sorted([stem, first, first, summed, summed])
    assert found.unknown()["line"] == found.unknown()["module"] == 0


class Turns(nn.Module):
    """A loop that an input ends."""

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        def turn(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, torch.tanh(x @ x)

        return torch.while_loop(lambda i, x: i < turns, turn, (torch.zeros((), dtype=torch.int64), x))[1]


def test_a_loop_has_only_its_own_time_and_its_body_all_turns() -> None:
    file = exported(Turns(), torch.randn(64, 64), torch.tensor(7), exporter="to_onnx")
    found = profile(file, {"x": torch.randn(64, 64), "turns": torch.tensor(7)}, runs=3)
    assert {node.op for node in found.nodes} > {"Loop", "MatMul", "Tanh"}
    for ran in found.runs:
        assert sum(span.key[1] == "MatMul" for span in ran.spans) == 7
        assert sum(span.own for span in ran.spans) <= ran.seconds
        (loop,) = [span for span in ran.spans if span.key[1] == "Loop"]
        assert loop.own < loop.seconds


class Block(nn.Module):
    """Becomes a function of the file."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.fc(x))


def test_nodes_of_a_function_belong_to_the_module_that_calls_it() -> None:
    file = exported(nn.Sequential(Block(), Block(), Block()), torch.randn(2, 8), exporter="to_onnx", functions=[Block])
    assert len(file.model.functions) == 1
    found = profile(file, runs=2)
    assert {node.module() for node in found.nodes if node.op == "Gemm"} == {f"{place}.fc, Linear" for place in range(3)}
    assert {node.module() for node in found.nodes if node.op == "Sin"} == {f"{place}, Block" for place in range(3)}


def test_a_file_that_keeps_nothing_of_its_source_says_so() -> None:
    found = profile(exported(Model(), torch.randn(3, WIDTH, WIDTH), exporter="torchscript"), runs=2)
    assert [group.name for group in found.by_line()] == [NO_LINE]
    assert [group.name for group in found.by_module()] == [NO_MODULE]
    assert found.unknown() == {"line": 1, "several": 0, "module": 1}
    assert found.by_op()[0].name == "MatMul"


def saved(folder: Path, *inputs: tuple[int, list[Any]], op: str = "Identity", weights: bool = False) -> Path:
    """A file of nameless nodes, its weights beside it."""
    given = [helper.make_tensor_value_info(f"in{i}", kind, axes) for i, (kind, axes) in enumerate(inputs)]
    nodes = [helper.make_node(op, [value.name], [f"out{i}"]) for i, value in enumerate(given)]
    results = [helper.make_tensor_value_info(f"out{i}", kind, None) for i, (kind, _) in enumerate(inputs)]
    held = []
    if weights:
        held = [onnx.numpy_helper.from_array(numpy.ones((64, 64), "float32"), "weight")]
        nodes.append(helper.make_node("MatMul", ["out0", "weight"], ["product"]))
        results[0] = helper.make_tensor_value_info("product", TensorProto.FLOAT, None)
    made = helper.make_model(helper.make_graph(nodes, "g", given, results, held), opset_imports=[helper.make_opsetid("", 20)])
    made.ir_version = 10
    path = folder / "made.onnx"
    onnx.save(made, path, save_as_external_data=weights, location="made.data", size_threshold=0)
    return path


def test_nodes_without_names_and_weights_beside_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, (TensorProto.FLOAT, ["rows", 64]), op="Relu", weights=True)
    before = path.read_bytes()
    found = profile(path, sizes={"rows": 3}, runs=2)
    assert {node.op for node in found.nodes} == {"Relu", "MatMul"}
    assert all(node.origin.of == 1 for node in found.nodes)
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["made.data", "made.onnx"]
    (tmp_path / "made.data").unlink()
    with pytest.raises(FileNotFoundError, match=r"'made\.data', which does not exist"):
        profile(path, sizes={"rows": 3})


KINDS = (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL)


@pytest.mark.parametrize("kind", KINDS, ids=TensorProto.DataType.Name)
def test_inputs_of_many_types_are_made_up(tmp_path: Path, kind: int) -> None:
    found = profile(saved(tmp_path, (kind, ["n", 2])), sizes={"n": 3}, runs=1, warmup=0)
    assert len(found.runs) == 1
    assert any(line.startswith("the inputs are generated") for line in found.notes)


@pytest.mark.parametrize(
    ("kind", "axes", "given", "sizes", "said"),
    [
        (TensorProto.STRING, [2], None, {}, r"the input 'in0' is tensor\(string\), which cannot be generated"),
        (TensorProto.FLOAT, ["n", 2], None, {}, "the file leaves n open: pass sizes, as in n=8"),
        (TensorProto.FLOAT, ["n", 2], None, {"m": 3}, "no input has an axis named 'm': the named axes are n"),
        (TensorProto.FLOAT, [3, 2], None, {"m": 3}, "no input has an axis named 'm': all sizes are fixed in the file"),
        (TensorProto.FLOAT, [None, 2], None, {}, "has an axis without a name"),
        (TensorProto.FLOAT, ["n", 2], {}, {}, "the input 'in0' is missing: the inputs of the model are in0"),
        (TensorProto.FLOAT, ["n", 2], {"in0": numpy.ones((3, 2), "float32"), "y": 1}, {}, "does not have an input 'y': its inputs are in0"),
        (TensorProto.FLOAT, ["n", 2], {"in0": numpy.ones((3, 2))}, {}, r"in0 is tensor\(float\), .* is float64, \[3, 2\]"),
        (TensorProto.FLOAT, ["n", 2], {"in0": numpy.ones((3, 3), "float32")}, {}, r"in0 is tensor\(float\), .* is float32, \[3, 3\]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_in_one_line(
    tmp_path: Path, kind: int, axes: list[Any], given: Mapping[str, Any] | None, sizes: Mapping[str, int], said: str
) -> None:
    with pytest.raises(NoInputs, match=said) as refused:
        profile(saved(tmp_path, (kind, axes)), given, sizes=sizes)
    assert len(str(refused.value).splitlines()) == 1


def test_what_onnx_runtime_does_not_load_or_run_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="ONNX Runtime rejects the file"):
        profile(saved(tmp_path, (TensorProto.FLOAT, [2]), op="NoSuchOperator"))
    reshaped = exported(Embedded(), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(NoInputs, match="ONNX Runtime fails with these inputs: ") as refused:
        profile(reshaped)
    assert len(str(refused.value).splitlines()) == 1


class Embedded(nn.Module):
    """An input that is made up is 1, and there is no row 1."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.ones(1, 3))

    def forward(self, which: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding(which, self.rows)


def test_arguments_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path, (TensorProto.FLOAT, [2]))
    with pytest.raises(ValueError, match="pass inputs or sizes, not both"):
        profile(path, {"in0": torch.ones(2)}, sizes={"n": 3})
    with pytest.raises(ValueError, match="runs must be 1 or more"):
        profile(path, runs=0)
    with pytest.raises(ValueError, match="does not make an ONNX file"):
        profile(exported(Model(), torch.randn(3, WIDTH, WIDTH), exporter="torch.export"))


def test_a_provider_that_is_not_there_is_said_once_with_what_was_used_instead(tmp_path: Path) -> None:
    found = profile(saved(tmp_path, (TensorProto.FLOAT, [2])), runs=1, providers=["CoreMLExecutionProvider"])
    said = [line for line in found.said() if "CoreMLExecutionProvider" in line]
    assert len(said) == 1
    assert said[0].endswith("CPUExecutionProvider was used instead")


def test_a_graph_that_cannot_be_written_down_leaves_what_was_fused_without_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a provider makes a program of a part of it."""
    real = run.session

    def session(file: bytes, options: Any) -> Any:
        if options.optimized_model_filepath:
            raise RuntimeError("Unable to serialize model as it contains compiled nodes.")
        return real(file, options)

    monkeypatch.setattr(run, "session", session)
    found = profile(exported(TwoLines(), torch.randn(3, 4)), runs=1)
    assert [(node.op, node.line, node.origin.of) for node in found.nodes] == [("Gelu", NO_LINE, 0)]


def test_what_another_provider_computes_is_told_and_not_trusted() -> None:
    def node(name: str, provider: str) -> NodeTime:
        return NodeTime(name, "Add", provider, Origin(), (0.5,))

    nodes = (node("a", "CUDAExecutionProvider"), node("b", "CPUExecutionProvider"))
    found = Profile("made.onnx", (Run(2.0, ()),), nodes)
    assert "CUDAExecutionProvider 50%, CPUExecutionProvider 50%" in found.said()[-1]
    assert "only the launch may be timed" in found.said()[-1]


def event(name: str, ts: int, dur: int, op: str = "") -> dict[str, Any]:
    kernel = {"cat": "Node", "name": f"{name}_kernel_time", "args": {"op_name": op, "provider": "CPUExecutionProvider"}}
    return {**(kernel if op else {"cat": "Session", "name": name, "args": {}}), "ts": ts, "dur": dur}


def test_events_are_read_run_by_run() -> None:
    first = [event("a", 12, 5, "Add"), event("in", 21, 30, "MatMul"), event("loop", 20, 40, "Loop"), event("model_run", 10, 60)]
    again = [event("a", 112, 7, "Add"), event("model_run", 110, 20), event("SequentialExecutor::Execute", 111, 10)]
    one, two = runs_of([*first, *again])
    assert one.own() == pytest.approx({("a", "Add"): 5e-6, ("loop", "Loop"): 10e-6, ("in", "MatMul"): 30e-6})
    assert one.spans[0] == Span(("a", "Add"), "CPUExecutionProvider", 2e-6, 5e-6, 5e-6)
    assert (two.own(), two.seconds) == (pytest.approx({("a", "Add"): 7e-6}), 20e-6)


def test_nodes_get_names_that_no_other_graph_has() -> None:
    inner = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name="a")], "inner", [], [helper.make_tensor_value_info("y", 1, None)]
    )
    nodes = [helper.make_node("Not", ["c"], ["d"], name="a"), helper.make_node("If", ["d"], ["z"], then_branch=inner, else_branch=inner)]
    graph = helper.make_graph(nodes, "g", [], [])
    named = assign_node_names(helper.make_model(graph)).graph
    branches = [attribute.g.node[0].name for attribute in named.node[1].attribute]
    assert [node.name for node in named.node] == ["a", "If_1"]
    assert branches == ["a_2", "a_3"]


def frame(file: str, line: str) -> str:
    return f'  File "{file}", line 7, in forward\n    {line}\n'


def test_the_line_is_the_innermost_that_is_not_torchs_own() -> None:
    library = "/x/site-packages/transformers/models/m.py"
    torchs = "/x/site-packages/torch/nn/modules/linear.py"
    assert placed_line(frame("/y/own.py", "a") + frame(torchs, "b")) == "own.py:7  a"
    assert placed_line(frame("/y/own.py", "a") + frame(library, "b") + frame(torchs, "c")) == "transformers/models/m.py:7  b"
    assert placed_line(frame(torchs, "c")) == "torch/nn/modules/linear.py:7  c"
    assert placed_line(frame(str(Path.cwd() / "sub/own.py"), "a")) == "sub/own.py:7  a"
    assert placed_line(frame("<eval_with_key>.3", "a")) == ""
    assert placed_line(frame("/tmp/ipykernel_12/34.py", "a")) == "cell:7  a"


def test_it_is_written_as_tables_and_as_a_picture(planted: Profile, tmp_path: Path) -> None:
    for suffix, write in WRITERS.items():
        write(planted, tmp_path / f"it{suffix}")
    with (tmp_path / "it.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    told = json.loads((tmp_path / "it.json").read_text())
    assert [row["node"] for row in rows] == [row["node"] for row in told["nodes"]]
    assert len(rows) == len(planted.nodes)
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1)
    assert rows[0]["lines"].endswith("# slow")
    assert rows[0]["module"] == "planted"
    assert all(len(row["seconds"].split()) == 5 for row in rows)
    assert told["unknown"] == planted.unknown()
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    assert "when its nodes ran" in (tmp_path / "it.svg").read_text()
    page = (tmp_path / "it.html").read_text()
    assert (page.count("<table"), page.count("<svg")) == (3, 1)
    assert "# slow" in page


def test_the_run_that_is_drawn_has_no_node_that_stands_out() -> None:
    seconds = {"a": (1.0, 1.1, 1.0, 9.0), "b": (2.0, 2.1, 9.0, 2.0), "c": (9.0, 3.1, 3.0, 3.0)}
    nodes = tuple(NodeTime(name, "Add", "", Origin((), None), each) for name, each in seconds.items())
    runs = tuple(Run(sum(each), ()) for each in zip(*seconds.values(), strict=True))
    assert Profile("it.onnx", runs, nodes).typical() == 1


def test_rows_that_are_not_shown_are_added_up(planted: Profile) -> None:
    operators = planted.tables(top=1)[0]
    assert len(operators.rows) == 2
    assert operators.rows[1]["operator"] == f"{len(planted.by_op()) - 1} others"
    assert sum(int(row["nodes"]) for row in operators.rows) == len(planted.nodes)
    assert "<table" in planted._repr_html_()
