"""What the fuzzers found, each alone: before it was mended it ended in an error of the machinery, hung, or left something behind."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hostile import LONG, Draws, NotBegun, Odd, Raises, Returns, X, itself, made
from promise import OfModel, ended_after
from torch import nn

from exportlab import Sample, case, cli, compare, doctor, expect_failure, export, require, show, tensor, to_onnx, verify
from exportlab.cases import registered_case
from exportlab.doctor.subject import patient_of
from exportlab.measure.timing import interleaved
from exportlab.outcomes import Outcome
from exportlab.patches import as_containers, for_model
from exportlab.programs import MissingProgram
from exportlab.specs import built, integers
from exportlab.sweep import Limits, grid, sweep
from exportlab.sweep.changes import changes
from exportlab.sweep.records import read
from exportlab.verification.difference import difference_of
from exportlab.verification.divergence import compared, first_difference
from fx2onnx.errors import CaptureError, UnsupportedArgument, WrongNumbers

LINEAR = made("linear")
PROGRAM = to_onnx(LINEAR, (X,))
ARTIFACT = export("to_onnx", LINEAR, (X,))
CAPTURED = torch.export.export(LINEAR, (X,))
META, SPARSE = X.to("meta"), X.to_sparse()


class Plain(nn.Module):
    """Says nothing."""

    def forward(self, x: Any) -> Any:
        """Return what it is given."""
        return x


def expecting(*given: Any) -> None:
    with expect_failure(*given):
        raise ValueError("no")


def patched(*given: Any) -> None:
    with for_model(*given):
        pass


def contained(*classes: Any) -> None:
    with as_containers(*classes):
        pass


def declared(*dims: Any, **sizes: Any) -> None:
    case(sizes)(lambda: (LINEAR, (tensor(*dims),))).build()


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Sample(None), TypeError, "args must be a tuple, not None"),
    (lambda: Sample((), {1: X}), TypeError, "kwargs must have names as keys, not an int"),
    (lambda: Sample((itself(),)), ValueError, "arguments are nested too deep, or hold themselves"),
    (lambda: verify(PROGRAM, [LINEAR], (X,)), TypeError, "module must be a Module, not a list"),
    (lambda: verify(PROGRAM, NotBegun(), (X,)), TypeError, r"module is a NotBegun, whose __init__ does not call super\(\).__init__\(\)"),
    (lambda: verify(PROGRAM, LINEAR, (X,), tolerances=[1]), TypeError, "tolerances must be a Mapping or None, not a list"),
    (lambda: verify(PROGRAM, LINEAR, (X,), tolerances={"float32": 1}), TypeError, "tolerances must be a mapping of dtypes to pairs"),
    (lambda: verify(PROGRAM, LINEAR, (X,), tolerances={torch.float32: (-1, 0)}), ValueError, "tolerances of torch.float32 are"),
    (lambda: verify(PROGRAM, made("lazy"), (X,)), ValueError, r"module has lazy weights, which have no shape yet \(weight, bias\)"),
    (lambda: verify(PROGRAM, LINEAR, (SPARSE,)), ValueError, "a sample contains a torch.sparse_coo tensor"),
    (lambda: verify(PROGRAM, LINEAR, (META,)), ValueError, "a sample contains a tensor on the meta device"),
    (lambda: compare(LINEAR, (X,), exporters="dynamo"), TypeError, "exporters must be a list of names, not a str"),
    (lambda: compare(LINEAR, (X,), options=("dynamo",)), TypeError, "options must be a Mapping or None, not a tuple of str"),
    (lambda: compare([], (X,)), TypeError, "module must be a Module, not a list"),
    (lambda: export(["to_onnx"], LINEAR, (X,)), TypeError, "exporter must be a str, not a list"),
    (lambda: export("to_onnx", LINEAR, (X,), 3), TypeError, "kwargs must be a Mapping or None, not an int"),
    (lambda: export("to_onnx", NotBegun(), (X,)), TypeError, "module is a NotBegun, whose __init__"),
    (lambda: first_difference(PROGRAM, X, tolerances=None), TypeError, "tolerances must be a Mapping, not None"),
    (lambda: compared(None, PROGRAM, (X,)), TypeError, "captured must be an ExportedProgram or a RunProgram, not None"),
    (lambda: doctor(LINEAR, (X,), exporters=3), TypeError, "exporters must be a list of names, not an int"),
    (lambda: doctor(LINEAR, (X,), train=X), TypeError, "train must be a bool, not a Tensor"),
    (lambda: doctor(LINEAR, (X,), seconds="x"), TypeError, "seconds must be an int or a float, not a str"),
    (lambda: doctor(LINEAR, (X,), seconds=float("nan")), ValueError, "seconds must be more than 0, and finite, not nan"),
    (lambda: expecting(3), TypeError, "kind must be a class of errors, not an int"),
    (lambda: expecting(ValueError, "["), ValueError, r"match='\[' is not a valid regular expression"),
    (lambda: expecting(ValueError, "", None), TypeError, "lines must be an int, not None"),
    (lambda: require(3), TypeError, "needed must be a list of names, not a tuple of int"),
    (lambda: registered_case([]), TypeError, "name must be a str, not a list"),
    (lambda: case({"n": 3}), TypeError, r"dims\['n'\] must be a Sequence, not an int"),
    (lambda: case({"n": (4, -1)}), ValueError, r"dims\['n'\]\[1\] must be 0 or more, not -1"),
    (lambda: case()(3), TypeError, "@case decorates a function, not an int"),
    (lambda: case(lambda: None), TypeError, r"write @case\(\), or @case\(dims="),
    (lambda: case(training=None), TypeError, "training must be a bool, not None"),
    (lambda: declared("q", n=(4,)), ValueError, "'q' has no dimension 'q': the case declares n"),
    (lambda: declared("n+", n=(4,)), ValueError, r"'n\+' has no dimension '': the case declares n"),
    (lambda: tensor(1.5), TypeError, "dimension must be an int or a str, not a float"),
    (lambda: tensor(-1), ValueError, "dimension must be 0 or more, not -1"),
    (lambda: tensor(1, dtype="float32"), TypeError, "dtype must be a dtype, not a str"),
    (lambda: integers(3, low=5, high=5), ValueError, "low=5 must be less than high=5"),
    (lambda: built(3), TypeError, "build must be a function, not an int"),
    (lambda: grid([], [], ["static"]), ValueError, "exporters is empty"),
    (lambda: grid([], ["to_onnx"], rounds=None), TypeError, "rounds must be a whole number, not None"),
    (lambda: grid([3], ["to_onnx"]), TypeError, r"cases\[0\] must be a Case, not an int"),
    (lambda: sweep(None, "new.jsonl"), TypeError, "tasks must be a Sequence, not None"),
    (lambda: sweep([], "new.jsonl", processes=0), ValueError, "processes must be 1 or more, not 0"),
    (lambda: sweep([], "new.jsonl", tell=3), TypeError, "tell must be a function, not an int"),
    (lambda: sweep([], "a\0b"), ValueError, r"path='a\\x00b': no file has such a name"),
    (lambda: read(3), TypeError, "path must be a str or a PathLike, not an int"),
    (lambda: Limits(seconds=float("nan")), ValueError, "seconds must be more than 0, and finite, not nan"),
    (lambda: Limits(bytes=0.5), TypeError, "bytes must be a whole number, not a float"),
    (lambda: changes(None, []), TypeError, "before must be a Sequence, not None"),
    (lambda: changes([], [3]), TypeError, r"after\[0\] must be a Record, not an int"),
    (lambda: interleaved({1: {}}, 1), TypeError, r"groups\[1\] must contain"),
    (lambda: interleaved({}, None), TypeError, "rounds must be a whole number, not None"),
    (lambda: show.table(3), TypeError, "rows must be a Sequence, not an int"),
    (lambda: show.table([{"a": itself()}]), ValueError, "rows are nested too deep, or hold themselves"),
    (lambda: show.graph(PROGRAM, title=3), TypeError, "title must be a str, not an int"),
    (lambda: show.graph(PROGRAM, save="picture"), ValueError, "save='picture': a picture is written to a .svg file"),
    (lambda: show.summary("folder"), OSError, "cannot read folder: it is a folder, a device or a pipe"),
    (lambda: show.summary("pipe"), OSError, "cannot read pipe: it is a folder, a device or a pipe"),
    (lambda: show.summary("there.onnx"), ValueError, "there.onnx is not an ONNX model"),
    (lambda: patched(3), TypeError, "module must be a Module, not an int"),
    (lambda: patched(LINEAR, None), TypeError, "args must be a tuple, not None"),
    (lambda: contained(int), TypeError, "as_containers accepts dataclasses, not a type"),
    (lambda: ARTIFACT(Odd()), TypeError, "but the argument is an Odd"),
    (lambda: ARTIFACT(META), TypeError, "ONNX Runtime needs dense tensors with data"),
    (lambda: ARTIFACT(SPARSE), TypeError, "ONNX Runtime needs dense tensors with data"),
    (lambda: ARTIFACT(itself()), ValueError, "arguments are nested too deep"),
    (lambda: PROGRAM(Odd()), UnsupportedArgument, "input is a Odd"),
    (lambda: PROGRAM(META), UnsupportedArgument, "input is a torch.strided tensor on the device meta"),
    (lambda: PROGRAM(X, X), UnsupportedArgument, r"the exported model has 1 inputs \(input\), but the call has 2 arguments"),
    (lambda: PROGRAM(itself()), UnsupportedArgument, "nested too deep"),
    (lambda: PROGRAM.apply_weights(None), UnsupportedArgument, "state_dict=None: pass a dict from names to tensors"),
    (lambda: PROGRAM.apply_weights({"weight": X}), UnsupportedArgument, r"weight is torch.float32 \[2, 3\] in the exported model, but"),
    (lambda: PROGRAM.save(None), TypeError, "a path must be a str or a Path, not a NoneType"),
    (lambda: PROGRAM.save("a\0b"), OSError, r"cannot write 'a\\x00b': a file name cannot contain"),
    (lambda: PROGRAM.save("\ud800"), OSError, r"cannot write '\\ud800': a file name cannot contain"),
    (lambda: PROGRAM.save(LONG), OSError, "cannot write x+: File name too long"),
    (lambda: PROGRAM.save("loop"), OSError, "cannot write loop: it is a symbolic link that leads back to itself"),
    (lambda: ARTIFACT.save("loop"), OSError, "cannot write loop: it is a symbolic link that leads back to itself"),
    (lambda: to_onnx(LINEAR, (X,), kwargs=3), UnsupportedArgument, "kwargs=3: pass a dict from argument names"),
    (lambda: to_onnx(LINEAR, (itself(),)), UnsupportedArgument, "nested too deeply, or contain themselves"),
    (lambda: to_onnx(LINEAR, (X,), verify=X), UnsupportedArgument, r"verify=.*: pass True or False"),
    (lambda: to_onnx(LINEAR, (X,), dynamo=X), UnsupportedArgument, "dynamo=tensor"),
    (lambda: to_onnx(LINEAR, (X,), mutations=X), UnsupportedArgument, "mutations=tensor"),
    (lambda: to_onnx(LINEAR, (X,), input_names=[X]), UnsupportedArgument, "input_names=.*: pass a list of names"),
    (lambda: to_onnx(LINEAR, (X,), functions=3), UnsupportedArgument, "functions must be True or a sequence of module classes"),
    (lambda: to_onnx(LINEAR, (X,), functions=X), UnsupportedArgument, "functions must be True or a sequence of module classes"),
    (lambda: to_onnx(LINEAR, (X,), artifacts_dir=3, report=True), UnsupportedArgument, "artifacts_dir=3: pass the path of a folder"),
    (lambda: to_onnx(LINEAR, (), dynamic_shapes=({0: "b"},)), CaptureError, "forward does not accept the arguments: missing a required"),
    (lambda: to_onnx(LINEAR, (X,), dynamic_shapes=itself()), UnsupportedArgument, "dynamic_shapes are nested too deep"),
    (lambda: to_onnx(LINEAR, (X,), custom_translation_table=[1]), TypeError, "custom_translation_table must be a mapping .* not a list"),
    (lambda: to_onnx(LINEAR, (X,), dynamic_axes=[1]), UnsupportedArgument, r"dynamic_axes=\[1\]: pass a dict from input names"),
    (lambda: export("to_onnx", LINEAR, (X,), train=X), TypeError, "train must be a bool, not a Tensor"),
    (lambda: PROGRAM(10**400), UnsupportedArgument, "input does not fit into 64 bits"),
    (lambda: integers(3, high=10**400), ValueError, "has more than 64 bits"),
    (lambda: integers(3, high=True), TypeError, "high must be a whole number, not a bool"),
    (lambda: require("a\nb"), MissingProgram, r"not on the path: a\\nb"),
    (lambda: to_onnx(NotBegun(), (X,)), UnsupportedArgument, "model is a NotBegun whose __init__ does not call super"),
    (
        lambda: to_onnx(torch.jit.script(Plain()), (X,)),
        CaptureError,
        "Exporting a ScriptModule is not supported: the model is a ScriptModule",
    ),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "there.onnx").write_bytes(b"precious")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[f"{i}-{said[:20]}" for i, (_, _, said) in enumerate(REFUSED)])
def test_it_is_refused_in_a_line_that_names_it(folder: Path, call: Callable[[], Any], kind: type[Exception], said: str) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(kind, match=said) as caught, ended_after(10):
        call()
    assert caught.type in (kind, FileNotFoundError)
    assert "\n" not in str(caught.value)
    assert sorted(folder.iterdir()) == before


def test_random_numbers_of_the_caller_are_left_alone() -> None:
    before = torch.get_rng_state()
    with suppress(WrongNumbers):  # the file draws others
        to_onnx(Draws(), (X,), verify=True)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_eager_returns_may_have_no_end() -> None:
    class Endless(nn.Module):
        def forward(self, x: Any) -> Any:
            return itself()

    assert "eager refuses these inputs: RecursionError" in str(verify(PROGRAM, Endless(), (X,)))


def test_an_error_of_the_model_comes_through() -> None:
    with pytest.raises(OfModel, match="first line"):
        Raises()(X)
    with pytest.raises(UnsupportedArgument, match=r"the model raises OfModel: no copies"):
        to_onnx(made("not copied"), (X,), verify=True)


def test_what_holds_no_numbers_is_not_compared() -> None:
    found = verify(PROGRAM, Returns(META), (X,))
    assert found.outcome is Outcome.SKIPPED
    assert "it returns a tensor on the meta device, which has no data" in found.checks[0].detail
    assert "it returns a torch.sparse_coo tensor: only dense tensors" in verify(PROGRAM, Returns(SPARSE), (X,)).checks[0].detail


def test_values_that_cannot_be_compared_are_not_equal() -> None:
    assert difference_of(Sample((X,)), Sample((X.clone(),))).unlike
    assert not difference_of(float("nan"), float("nan")).problem


def test_a_sample_may_be_computed_from_what_needs_a_gradient() -> None:
    sample = (torch.ones(4, 3, requires_grad=True) * 2,)
    assert verify(PROGRAM, LINEAR, sample).outcome is Outcome.OK
    assert compare(LINEAR, sample, exporters=["to_onnx"]).outcomes() == {"to_onnx": Outcome.OK}


def test_a_module_that_cannot_be_copied_is_refused_by_what_it_holds() -> None:
    model = nn.Sequential(made("linear"), Returns([os]))
    with pytest.raises(TypeError, match=r"^Sequential\.1\.what cannot be copied \(cannot pickle 'module' object\), so running the module"):
        compare(model, (X,), exporters=["torch.export"])


def test_what_eager_draws_is_no_rounding() -> None:
    """Of 30 random states one used to come out as right."""
    layers = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
    artifact, found = export("dynamo", layers, (X,), train=True), set()
    with torch.random.fork_rng():
        for seed in range(30):
            torch.manual_seed(seed)
            found.add(verify(artifact, layers, (X,)).outcome)
    assert found == {Outcome.WRONG}


def test_a_spec_may_be_built_of_tensors_without_numbers() -> None:
    made = case()(lambda: (Plain(), (built(lambda part: (part, META), tensor(4)),))).build()
    assert made.samples[0].leaves()[1] is META


def test_the_doctor_looks_at_a_scripted_model() -> None:
    assert patient_of(made("scripted"), (X,)).at() is None


MODEL = """
from torch import nn
import torch
class NotBegun(nn.Module):
    def __init__(self): pass
def not_begun(): return NotBegun(), (torch.ones(4, 3),)
def good(): return nn.Linear(3, 2), (torch.ones(4, 3),)
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verify", LONG, "model.py:good"], "cannot read x+: File name too long"),
        (["verify", "there.onnx", f"{LONG}.py:good"], "cannot read x+.py: File name too long"),
        (["export", "a\nb.py:good", "-o", "new.onnx"], r"no such file: a\\nb.py"),
        (["export", "model.py:not_begun", "-o", "new.onnx"], "not_begun returned a NotBegun, whose __init__ does not call super"),
        (["export", "model.py:good", "-o", "loop"], "cannot write loop: it is a symbolic link that leads back to itself"),
        (["sweep", "--cases", "mlp", "-o", "loop"], "cannot write loop: it is a symbolic link that leads back to itself"),
        (["sweep", "--cases", "mlp", "-o", "new.jsonl", "--memory", "inf"], "inf is not a finite number"),
        (["sweep", "--cases", "mlp", "-o", "new.jsonl", "--timeout", "inf"], "inf is not a finite number"),
        (["sweep", "--cases", "mlp", "-o", "new.jsonl", "--exporters", ","], "--exporters is empty: give at least one name"),
        (["sweep", "--cases", "mlp", "-o", "new.jsonl", "--modes", ""], "--modes is empty: give at least one name"),
        (["doctor", "model.py:good", "--exporters", ""], "--exporters is empty: give at least one name"),
        (["verify", "there.onnx", "model.py:good", "--rtol", "inf"], "inf is not a finite number"),
        (["doctor", "model.py:good", "--limit", "inf"], "inf is not a finite number"),
    ],
)
def test_a_command_says_it_in_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (folder / "model.py").write_text(MODEL)
    monkeypatch.setattr(sys, "argv", ["exportlab", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    last = capsys.readouterr().err.splitlines()[-1]
    assert ended.value.code == 2
    assert last.startswith(("exportlab: ", "Error: "))
    assert re.search(said, last)
    assert not list(folder.glob("new*"))
