"""`to_onnx` is called as `torch.onnx.export` is: the same arguments in the same order, each done or refused by one line of advice."""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.export import Dim

from exportlab import Sample, to_onnx, verify
from fx2onnx.errors import CaptureError, FrozenDimension, UnsupportedArgument, WrongNumbers

ROOT = Path(__file__).parents[2]
X = torch.randn(4, 3)
OFFICIAL = inspect.signature(torch.onnx.export).parameters
OWN = inspect.signature(to_onnx).parameters
PAGE = (ROOT / "docs/to_onnx_arguments.md").read_text(encoding="utf-8")
TABLE = re.findall(r"^\| `(.+?)` \| (supported|default|refused) \|", PAGE, re.MULTILINE)
WORDS = {"TrainingMode": torch.onnx.TrainingMode, "OperatorExportTypes": torch.onnx.OperatorExportTypes, "torch": torch}


class Layer(nn.Module):
    """A layer whose weights are large enough for a file of their own."""

    def __init__(self, inputs: int = 3, outputs: int = 40) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return torch.relu(self.linear(x)) * factor


class Between(nn.Module):
    """A number between two tensors, the second of which may be a number as well."""

    def forward(self, x: torch.Tensor, share: float, y: torch.Tensor) -> torch.Tensor:
        return x * share + y


class ByValue(nn.Module):
    """What torch.export refuses: a branch that depends on a value."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


class Masked(nn.Module):
    """An argument that may be left out."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return x if mask is None else x * mask


class Keyword(nn.Module):
    """An argument by name only."""

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> torch.Tensor:
        return x * mask


class Counter(nn.Module):
    """Changes a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x * self.calls


class Nested(nn.Module):
    """Tensors in a dict and in a list."""

    def forward(self, x: torch.Tensor, by: dict[str, torch.Tensor], further: list[torch.Tensor]) -> torch.Tensor:
        return x * by["scale"] + further[0]


def calls(name: str) -> Iterator[tuple[Path, ast.Call]]:
    """Every call of a function by this name on a page, in a known error, or in a test."""
    folders = {
        "gallery": "**/*.py",
        "tutorials": "[0-9]*.md",
        "benchmarks": "*.py",
        "content/errors": "*.py",
        "tests": "**/*.py",
    }
    for folder, pattern in folders.items():
        for path in sorted((ROOT / folder).glob(pattern)):
            for node in ast.walk(ast.parse(code(path))):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(name):
                    yield path, node


def code(path: Path) -> str:
    """A script as it stands; of a lesson its cells, without the magic lines."""
    if path.suffix == ".py":
        return path.read_text(encoding="utf-8")
    cells = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", "\n".join(cells), flags=re.MULTILINE)


def binds(call: ast.Call) -> bool:
    try:
        inspect.signature(to_onnx).bind_partial(*call.args, **{word.arg: None for word in call.keywords if word.arg})
    except TypeError:
        return False
    return True


def interface(path: Path) -> tuple[list[str], list[str]]:
    """The names of the inputs and of the weights of a file."""
    graph = onnx.load(path, load_external_data=False).graph
    return [value.name for value in graph.input], [value.name for value in graph.initializer]


def test_the_arguments_of_torch_come_first_with_its_order_kinds_and_defaults() -> None:
    first = list(OWN.values())[: len(OFFICIAL)]
    assert [(p.name, p.kind, p.default) for p in first] == [(p.name, p.kind, p.default) for p in OFFICIAL.values()]


def test_its_own_arguments_come_after_and_by_name_only() -> None:
    rest = list(OWN.values())[len(OFFICIAL) :]
    assert [p.name for p in rest] == ["strict", "functions", "mutations", "fallback", "accept_ranges", "capture"]
    assert {p.kind for p in rest} == {inspect.Parameter.KEYWORD_ONLY}


def test_every_call_of_torch_onnx_export_on_a_page_is_one_of_to_onnx() -> None:
    found = list(calls("onnx.export"))
    assert len(found) > 50
    assert [f"{path.name}: {ast.unparse(call)}" for path, call in found if not binds(call)] == []


def test_no_page_gives_keyword_arguments_where_the_path_stands() -> None:
    paths = ("path", "file", "folder", "f", "own")
    third = [(path, ast.unparse(call.args[2])) for path, call in calls("to_onnx") if len(call.args) > 2]
    assert [(path.name, given) for path, given in third if not any(word in given for word in paths) and path != Path(__file__)] == []


def test_the_table_on_its_page_has_every_argument_of_torch() -> None:
    named = {word.arg for row, _ in TABLE for word in ast.parse(f"f({row})", mode="eval").body.keywords}
    assert named | {"model", "args"} == set(OFFICIAL)


@pytest.mark.parametrize(("row", "said"), TABLE, ids=[row for row, _ in TABLE])
def test_the_table_on_its_page_says_what_happens(row: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = eval(f"dict({row})", WORDS)
    if said != "refused":
        assert to_onnx(Layer().eval(), (X,), **options)(X, *options.get("kwargs", {}).values())[0].shape == (4, 40)
        return
    [name] = list(options)[-1:]
    with pytest.raises(UnsupportedArgument, match=rf"^{name}=?.{{20,}}"):
        to_onnx(Layer().eval(), (X,), **options)
    assert not list(tmp_path.iterdir())


def test_a_path_saves_and_the_program_is_returned(tmp_path: Path) -> None:
    model = Layer().eval()
    program = to_onnx(model, (X,), tmp_path / "model.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    [found] = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"x": X.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), model(X))
    verify(program, model, [(X,)]).check()


def test_a_text_is_a_path_and_one_file_is_one_file(tmp_path: Path) -> None:
    to_onnx(Layer(), (X,), str(tmp_path / "model.onnx"), external_data=False)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_weights_are_inputs_as_well_where_that_is_asked_for(tmp_path: Path) -> None:
    model, other = Layer().eval(), Layer().eval()
    to_onnx(model, (X,), tmp_path / "model.onnx", keep_initializers_as_inputs=True)
    assert interface(tmp_path / "model.onnx") == (["x", "linear.weight", "linear.bias"], ["linear.weight", "linear.bias", "constant"])
    weights = {name: tensor.numpy() for name, tensor in other.state_dict().items()}
    [found] = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"x": X.numpy(), **weights})
    torch.testing.assert_close(torch.from_numpy(found), other(X))


def test_weights_may_be_left_out_of_the_file_and_the_program_keeps_them(tmp_path: Path) -> None:
    program = to_onnx(Layer(), (X,), tmp_path / "model.onnx", export_params=False, keep_initializers_as_inputs=True)
    assert interface(tmp_path / "model.onnx") == (["x", "linear.weight", "linear.bias"], ["constant"])
    program.save(tmp_path / "again.onnx")
    assert interface(tmp_path / "again.onnx") == (["x"], ["linear.weight", "linear.bias", "constant"])


def test_a_state_that_is_an_input_already_is_one_input(tmp_path: Path) -> None:
    to_onnx(Counter(), (X,), tmp_path / "model.onnx", mutations="outputs", keep_initializers_as_inputs=True)
    inputs, _ = interface(tmp_path / "model.onnx")
    assert inputs[:2] == ["x", "calls"]
    assert len(set(inputs)) == len(inputs)


@pytest.mark.parametrize(
    ("f", "said"),
    [({"factor": 3.0}, "third argument is the path to save to: pass keyword arguments with kwargs="), (open, "not a path")],
    ids=["keywords", "function"],
)
def test_what_is_no_path_is_refused_in_one_line(f: Any, said: str) -> None:
    with pytest.raises(UnsupportedArgument, match=said):
        to_onnx(Layer(), (X,), f)


def test_what_cannot_be_written_is_told_before_the_export(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "model.onnx")
    for name, error, said in (
        ("gone/model.onnx", FileNotFoundError, "there is no folder .*gone$"),
        ("", IsADirectoryError, "it is a folder; pass the path of a file"),
        ("pipe", FileExistsError, "it is a device, a pipe or a socket"),
        ("link", FileExistsError, "the weights would be missing next to this symbolic link"),
    ):
        with pytest.raises(error, match=rf"cannot write .*{name}: {said}"):
            to_onnx(ByValue(), (X,), tmp_path / name)
    with pytest.raises(CaptureError):
        to_onnx(ByValue(), (X,), tmp_path / "link", external_data=False, capture="torch.export")


def test_it_says_what_it_does_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    to_onnx(Layer(), (X,))
    assert capsys.readouterr().out == ""
    to_onnx(Layer(), (X,), verbose=True)
    assert "[to_onnx] translated them to 3 nodes, operators by source: own: 3" in capsys.readouterr().out


def test_a_report_is_a_page_with_program_model_and_profile(tmp_path: Path) -> None:
    to_onnx(Layer(), (X,), report=True, profile=True, artifacts_dir=tmp_path / "new" / "folder")
    [page] = (tmp_path / "new" / "folder").iterdir()
    assert re.fullmatch(r"onnx_export_[\d_-]+_success\.md", page.name)
    for part in ("No errors.", "torch.ops.aten.relu.default", "::Gemm(", "own", "cumulative"):
        assert part in page.read_text(encoding="utf-8")


def test_a_failure_has_a_report_and_says_where(tmp_path: Path) -> None:
    with pytest.raises(CaptureError) as raised:
        to_onnx(ByValue(), (X,), report=True, artifacts_dir=tmp_path, capture="torch.export")
    [page] = tmp_path.iterdir()
    assert page.name.endswith("_capture.md")
    assert raised.value.__notes__ == [f"The report is in {page}"]
    assert str(raised.value) in page.read_text(encoding="utf-8")


def test_the_captured_program_can_be_kept(tmp_path: Path) -> None:
    model = Layer().eval()
    to_onnx(model, (X,), dump_exported_program=True, artifacts_dir=tmp_path)
    [file] = tmp_path.iterdir()
    torch.testing.assert_close(torch.export.load(file).module()(X), model(X))


def test_without_passes_a_batch_norm_stays() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    image = torch.randn(2, 3, 5, 5)
    ops = [[node.op_type for node in to_onnx(model, (image,), optimize=on, verify=True).model.graph] for on in (True, False)]
    assert ops == [["Conv"], ["Conv", "BatchNormalization"]]


def test_a_wrong_file_does_not_pass_its_check(tmp_path: Path) -> None:
    table = {torch.ops.aten.relu.default: lambda g, x: g.Max(x, 0.5)}
    with pytest.raises(WrongNumbers, match="output 0 of the exported model is wrong for the arguments of the export"):
        to_onnx(Layer(), (X,), tmp_path / "model.onnx", custom_translation_table=table, verify=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", [Layer(), torch.export.export(Layer(), (X,))], ids=["module", "program"])
def test_a_right_file_passes_its_check(model: Any) -> None:
    to_onnx(model, (X,), verify=True)


def test_a_check_leaves_the_model_as_it_was() -> None:
    model = Counter()
    to_onnx(model, (X,), mutations="outputs", verify=True)
    assert model.calls.item() == 0


def test_a_check_needs_something_to_compare_with() -> None:
    captured = torch.export.export(Layer(), (X,))
    captured.example_inputs = None
    with pytest.raises(UnsupportedArgument, match="pass args, because"):
        to_onnx(captured, verify=True)
    to_onnx(captured, (X,), verify=True)


def test_axes_by_the_names_of_inputs() -> None:
    y = torch.randn(4, 3)
    asked = {"first": {0: "rows"}, "second": {0: "rows"}, "result": {0: "rows"}}
    program = to_onnx(Between(), (X, 0.25, y), input_names=["first", "second"], output_names=["result"], dynamic_axes=asked)
    assert [str(value.shape) for value in program.model.graph.inputs] == ["[rows,3]", "[rows,3]"]
    verify(program, Between(), [(X, 0.25, y), (X[:1], 0.25, y[:1])]).check()


def test_axes_of_nested_arguments_and_by_list() -> None:
    args = X, {"scale": torch.randn(3)}, [X]
    shapes = [value.shape for value in to_onnx(Nested(), args, dynamic_axes={"x": [0], "further_0": [0]}).model.graph.inputs]
    assert [isinstance(shape[0], int) for shape in shapes] == [False, True, False]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dynamic_axes": {"y": {0: "rows"}}}, "dynamic_axes names y, but the inputs are x: pass input_names"),
        ({"dynamic_axes": {"x": {"rows": 0}}}, "pass a dict {axis: name}"),
        ({"functions": True, "export_modules_as_functions": True}, "pass only functions"),
        ({"args": (X, {"factor": 3.0})}, "if it contains keyword arguments"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UnsupportedArgument, match=said):
        to_onnx(Layer(), **({"args": (X,)} | options))


def test_a_tensor_alone_is_a_tuple_of_one() -> None:
    assert [value.name for value in to_onnx(Layer(), X).model.graph.inputs] == ["x"]


def test_a_dict_at_the_end_holds_keywords_only_where_it_can_be_nothing_else() -> None:
    verify(to_onnx(Keyword(), (X, {"mask": X + 1})), Keyword(), [Sample((X,), {"mask": X + 1})]).check()
    by = X, {"scale": torch.randn(3)}
    verify(to_onnx(Nested(), (*by, [X], {})), Nested(), [(*by, [X])]).check()
    with pytest.raises(UnsupportedArgument, match=r"args ends in a dict whose keys are parameters of forward \(mask\)"):
        to_onnx(Masked(), (X, {"mask": X}))


def test_a_program_is_called_as_the_module_is() -> None:
    program = to_onnx(Between(), (X, 0.25, torch.tensor(5.0)))
    torch.testing.assert_close(program(X, 0.25, torch.tensor(5.0))[0], X * 0.25 + 5)
    with pytest.raises(ValueError, match=r"share is the constant 0\.25 in this model, but the call passes 0\.5"):
        program(X, 0.5, torch.tensor(5.0))
    by_name = to_onnx(Keyword(), (), kwargs={"mask": X + 1, "x": X})
    torch.testing.assert_close(by_name(x=X, mask=X + 1)[0], X * (X + 1))


def test_a_captured_program_has_its_axes_named() -> None:
    captured = torch.export.export(Layer(), (X,), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert str(to_onnx(captured, dynamic_shapes=({0: "batch"},)).model.graph.inputs[0].shape) == "[batch,3]"
    with pytest.raises(FrozenDimension, match='"wide" was asked to be dynamic but was captured as the constant 3'):
        to_onnx(captured, dynamic_shapes=({1: "wide"},))
    with pytest.raises(UnsupportedArgument, match=r"pass dynamic_shapes to torch\.export\.export when you capture it"):
        to_onnx(captured, dynamic_axes={"x": {0: "batch"}})


def test_a_model_in_training_is_what_training_asks_for() -> None:
    asked = torch.onnx.TrainingMode.TRAINING
    assert to_onnx(Layer().train(), (X,), training=asked)(X)[0].shape == (4, 40)


def test_other_weights_are_applied_or_refused() -> None:
    model, other = Layer().eval(), Layer().eval()
    program = to_onnx(model, (X,))
    program.apply_weights(other.state_dict())
    torch.testing.assert_close(program(X)[0], other(X))
    folded = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    program = to_onnx(folded, (torch.randn(2, 3, 5, 5),))
    with pytest.raises(UnsupportedArgument, match=r"the exported model stores 0\.weight, 1\.bias in another form"):
        program.apply_weights(folded.state_dict())
