"""The command line: its exit codes, its one-line errors, and that a failure leaves nothing behind."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import onnx
import pytest

from exportlab import cli
from exportlab.cli.matrix import matrix
from exportlab.outcomes import Outcome
from exportlab.sweep.records import Record, read

ROOT = str(Path(__file__).parents[2])

MODELS = '''
import sys
import torch
from torch import nn
from exportlab import case, tensor

@case(dims={"n": (4, 1, 0, 9)})
def good():
    """A layer."""
    return nn.Linear(3, 2), (tensor("n", 3),)

@case(dims={"batch": (6, 3)})
def frozen():
    class ByBatch(nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] > 4 else x * 3
    return ByBatch(), (tensor("batch", 3),)

def plain():
    return nn.Linear(3, 2), (torch.ones(4, 3),)

class Attends(nn.Module):
    def forward(self, x, mask):
        return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

def masked():
    return Attends(), (torch.randn(2, 1, 3, 4), torch.ones(2, 1, 1, 3, dtype=torch.bool))

class OnValue(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else x + 1  # here

def on_value():
    return OnValue(), (torch.ones(3),)

def raises():
    raise RuntimeError("no weights here\\nsecond line")

def exits():
    sys.exit(3)

def garbage():
    return 3

class Bad(nn.Module):
    def forward(self, x):
        return x.reshape(7)

def eager_fails():
    return Bad(), (torch.ones(3),)

def with_keywords():
    return Scaled(), (torch.ones(4, 3),), {"scale": torch.ones(3)}

def pair():
    return Scaled(), ((torch.ones(4, 3),), {"scale": torch.ones(3)})

def several():
    return Scaled(), [((torch.ones(4, 3),), {"scale": torch.ones(3)}), ((torch.ones(7, 3),), {"scale": torch.ones(3)})]

class Scaled(nn.Module):
    def forward(self, x, *, scale):
        return x * scale

number = 3
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "broken.py").write_text("import torch\ndef broken(:\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["exportlab", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".py" and p.name != "__pycache__")


def test_export_then_verify(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "export", "models.py:good", "-o", "good.onnx") == 0
    assert "wrote good.onnx" in capsys.readouterr().out
    assert run(monkeypatch, "verify", "good.onnx", "models.py:good") == 0
    assert capsys.readouterr().out.count("unseen size") == 3
    assert files(folder) == ["good.onnx"]


@pytest.mark.parametrize("command", [("verify", "good.onnx", "models.py:good"), ("profile", "good.onnx"), ("bench", "models.py:good")])
def test_a_provider_that_no_onnx_runtime_knows_is_an_error_with_the_nearest_name(
    command: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "good.onnx").touch()
    assert run(monkeypatch, *command, "--providers", "TensorRT") == 2
    assert "TensorRT is not a provider of ONNX Runtime: did you mean TensorrtExecutionProvider?" in capsys.readouterr().err


def test_a_file_that_is_wrong_only_where_a_mask_hides_everything_is_written_where_that_is_accepted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "export", "models.py:masked", "-o", "masked.onnx") == 1
    said = capsys.readouterr().err
    assert "the outcome is wrong only where a mask hides everything, so masked.onnx was not written" in said
    assert "use --accept-masked-rows if your inputs never mask an entire row" in said
    assert run(monkeypatch, "export", "models.py:masked", "-o", "masked.onnx", "--accept-masked-rows") == 0
    assert "bytes); it is wrong only where a mask hides everything\ninputs: x, mask; outputs: " in capsys.readouterr().out
    assert run(monkeypatch, "verify", "masked.onnx", "models.py:masked") == 1
    assert "masked.onnx is not correct: wrong only where a mask hides everything" in capsys.readouterr().err
    assert run(monkeypatch, "export", "models.py:frozen", "-o", "frozen.onnx", "--accept-masked-rows") == 1
    assert "--accept-masked-rows" not in capsys.readouterr().err
    assert files(folder) == ["masked.onnx"]


@pytest.mark.parametrize("exporter", ["dynamo", "to_onnx", "torchscript"])
def test_inputs_and_outputs_get_the_names_that_are_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], exporter: str
) -> None:
    named = ["--input-names", "tokens", "--output-names", "logits"]
    assert run(monkeypatch, "export", "models.py:plain", "-o", "named.onnx", "--exporter", exporter, *named) == 0
    assert "inputs: tokens; outputs: logits" in capsys.readouterr().out
    assert [value.name for value in onnx.load("named.onnx").graph.output] == ["logits"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "bert",
            "bert is a folder. Pass FILE.py:name, a function that returns AutoModel.from_pretrained('bert')",
        ),
        (
            "empty",
            "empty is a folder. Pass FILE.py:name, a function that returns the model with these weights",
        ),
        ("model.safetensors", "model.safetensors is a file of weights. Pass FILE.py:name, a function that returns"),
        ("models.py", "'models.py' is not of the form FILE.py:name, such as mymodel.py:build: a function in your file that returns"),
    ],
)
def test_what_is_no_function_is_told_what_to_write(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    for made in ("bert", "empty"):
        (folder / made).mkdir()
    (folder / "bert" / "config.json").write_text("{}")
    assert run(monkeypatch, "export", name, "-o", "model.onnx") == 2
    assert said in capsys.readouterr().err


def test_verify_refuses_a_provider_that_this_onnx_runtime_has_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "good.onnx").touch()
    assert run(monkeypatch, "verify", "good.onnx", "models.py:good", "--providers", "CoreMLExecutionProvider") == 2
    assert "CoreMLExecutionProvider is not in this ONNX Runtime, which has " in capsys.readouterr().err


def test_the_report_names_who_wrote_the_file_and_the_stated_tolerance(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "export", "models.py:good", "-o", "good.onnx", "--exporter", "to_onnx") == 0
    assert run(monkeypatch, "verify", "good.onnx", "models.py:good", "--rtol", "0.5") == 0
    assert "good.onnx, written by to_onnx: ok at every size given (float32 rtol 0.5, atol 0)" in capsys.readouterr().out
    assert run(monkeypatch, "verify", "good.onnx", "models.py:good", "--rtol", "0", "--atol", "0") in (0, 1)
    assert "float32 exact" in capsys.readouterr().out


def test_what_is_not_right_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "export", "models.py:frozen", "-o", "out.onnx") == 1
    assert "the outcome is frozen, so out.onnx was not written" in capsys.readouterr().err
    assert files(folder) == []
    assert run(monkeypatch, "export", "models.py:frozen", "-o", "out.onnx", "--force") == 0
    assert run(monkeypatch, "verify", "out.onnx", "models.py:frozen") == 1
    assert run(monkeypatch, "export", "models.py:frozen", "-o", "static.onnx", "--static") == 0


LONGER = """
from torch import nn
from exportlab import case, tensor

@case(dims={"n": (6, 3), "m": (4, 5)})
def longer():
    class Longer(nn.Module):
        def forward(self, x, y):
            return x * [*range(9)][x.shape[0]] + y.sum()
    return Longer(), (tensor("n", 3), tensor("m", 3))
"""


def test_another_exporter_may_refuse_what_would_be_frozen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "longer.py").write_text(LONGER)
    assert run(monkeypatch, "export", "models.py:frozen", "-o", "both.onnx", "--exporter", "to_onnx") == 0
    assert run(monkeypatch, "export", "longer.py:longer", "-o", "out.onnx", "--exporter", "to_onnx") == 1
    error = capsys.readouterr().err.strip()
    line = next(i for i, text in enumerate(LONGER.splitlines(), 1) if "[x.shape[0]]" in text)
    assert f"longer.py:{line} in forward" in error
    assert len(error.splitlines()) == 1
    assert files(folder) == ["both.onnx"]


@pytest.mark.parametrize(("name", "unseen"), [("plain", 0), ("with_keywords", 0), ("pair", 0), ("several", 1), ("good", 3)])
def test_every_form_is_taken_by_every_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, unseen: int
) -> None:
    """And what the samples show to move, moves."""
    target = f"models.py:{name}"
    assert run(monkeypatch, "export", target, "-o", "it.onnx", "--exporter", "to_onnx") == 0
    assert capsys.readouterr().out.count("unseen size") == unseen
    assert run(monkeypatch, "verify", "it.onnx", target) == 0


@pytest.mark.parametrize(("names", "modes"), [("pair", ["static"]), ("several,plain", ["dynamic", "static", "static"])])
def test_the_same_forms_are_taken_by_sweep_and_doctor(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], names: str, modes: list[str]
) -> None:
    assert run(monkeypatch, "sweep", "--cases", f"models.py:{names}", "--exporters", "torch.export", "-o", "it.jsonl") == 0
    assert sorted(record.mode for record in read(folder / "it.jsonl")) == modes
    assert run(monkeypatch, "doctor", f"models.py:{names.partition(',')[0]}", "--exporters", "torch.export") == 0
    assert "correct: torch.export" in capsys.readouterr().out


def test_a_function_that_was_named_for_a_sweep_and_is_none_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "sweep", "--cases", "models.py:garbage", "--exporters", "torch.export", "-o", "it.jsonl") == 2
    assert "garbage must return (module, args), " in capsys.readouterr().err
    assert files(folder) == []


SIBLINGS = {
    "sibling.py": "from torch import nn\nclass Layer(nn.Linear): pass\n",
    "sympy.py": "raise RuntimeError('the sympy of a stranger')\n",
    "late.py": "import torch\ndef ones(): return torch.ones(4, 3)\n",
    "json.py": """
import json, sys
assert hasattr(json, "dumps") and sys.modules["json"] is not sys.modules[__name__]
from sibling import Layer
def build():
    import sympy
    from late import ones
    assert hasattr(sympy, "Symbol")
    return Layer(3, 2), (ones(),)
""",
}


def test_siblings_are_found_and_take_no_other_modules_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own: what is imported here stays."""
    (tmp_path / "models").mkdir()
    for name, source in SIBLINGS.items():
        (tmp_path / "models" / name).write_text(source)
    target = "models/json.py:build"
    for asked in (
        ("doctor", target, "--exporters", "torch.export"),
        ("sweep", "--cases", target, "--exporters", "torch.export", "-o", "it.jsonl"),
    ):
        command = [sys.executable, "-P", "-m", "exportlab.cli", *asked]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ROOT})
        assert done.returncode == 0, done.stderr


def test_a_refusal_names_the_line(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "export", "models.py:on_value", "-o", "out.onnx") == 1
    line = next(i for i, text in enumerate(MODELS.splitlines(), 1) if "# here" in text)
    error = capsys.readouterr().err.strip()
    assert f"(at models.py:{line})" in error
    assert "GuardOnDataDependentSymNode" in error
    assert files(folder) == []


@pytest.mark.parametrize(
    ("target", "output", "said"),
    [
        ("nothing.py:f", "o.onnx", "no such file: nothing.py"),
        ("models.py", "o.onnx", "'models.py' is not of the form FILE.py:name"),
        ("models.py:nothing", "o.onnx", "models.py has no 'nothing'"),
        (
            "models.py:number",
            "o.onnx",
            "models.py:number is an int, not a function that returns (module, args), ",
        ),
        ("models.py:raises", "o.onnx", "models.py:raises raised RuntimeError: no weights here (at models.py:"),
        ("models.py:exits", "o.onnx", "models.py:exits raised SystemExit: 3 (at models.py:"),
        (
            "models.py:garbage",
            "o.onnx",
            "(module, args, kwargs) or (module, [sample, sample, …]); it returned an int (at models.py:",
        ),
        ("broken.py:f", "o.onnx", "broken.py raised SyntaxError"),
        ("models.py:good", "missing/o.onnx", "cannot write missing/o.onnx: there is no folder missing"),
        ("models.py:good", ".", "cannot write .: it is a folder"),
        ("models.py:eager_fails", "o.onnx", "raised RuntimeError"),
    ],
)
def test_bad_input_to_export(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, output: str, said: str
) -> None:
    code = run(monkeypatch, "export", target, "-o", output)
    error = capsys.readouterr().err.strip()
    assert code == 2
    assert said in error
    assert len(error.splitlines()) == 1
    assert files(folder) == []


def test_a_class_that_is_no_case_is_named_with_its_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "net.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n")
    assert run(monkeypatch, "export", "net.py:Net", "-o", "o.onnx") == 2
    assert capsys.readouterr().err.strip().endswith("it returned a Net (at net.py:4)")


def test_unknown_exporter(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "export", "models.py:good", "-o", "o.onnx", "--exporter", "nope") == 2
    assert "no exporter 'nope'" in capsys.readouterr().err


def test_bad_input_to_verify(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "verify", "nothing.onnx", "models.py:good") == 2
    assert capsys.readouterr().err.strip() == "exportlab: no such file: nothing.onnx"
    assert run(monkeypatch, "verify", "models.py", "models.py:good") == 2
    assert "models.py is not an ONNX model" in capsys.readouterr().err


COSTLY = """
from pathlib import Path
import torch
from torch import nn

def costly():
    with Path("calls.log").open("a") as log:
        log.write("called\\n")
    return nn.Linear(3, 2), (torch.ones(4, 3),)
"""


def test_a_factory_is_called_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may load a checkpoint."""
    (folder / "costly.py").write_text(COSTLY)
    assert run(monkeypatch, "export", "costly.py:costly", "-o", "costly.onnx") == 0
    assert (folder / "calls.log").read_text() == "called\n"


def test_a_sweep_over_a_file_of_cases_and_what_differs_between_two(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("sweep", "--cases", "models.py", "--exporters", "torch.export,to_onnx", "-o", "seen.jsonl")
    assert run(monkeypatch, *asked, "--pyperf", "times.json", "--csv", "seen.csv", "--html", "seen.html") == 0
    said = capsys.readouterr().out
    assert [line.split() for line in said.splitlines()[:3]] == [
        ["case", "torch.export", "to_onnx"],
        ["frozen", "narrow", "(ok", "static)", "ok"],
        ["good", "ok", "ok"],
    ]
    assert "8 records are in seen.jsonl" in said
    assert files(folder) == ["seen.csv", "seen.html", "seen.jsonl", "times.json"]
    page = (folder / "seen.html").read_text()
    assert "2 cases, 8 runs" in page
    assert '"frozen/torch.export/dynamic":{"outcome":"narrow"' in page
    assert 'class=\\"k\\">def' in page.replace("\\u003c", "<"), "the source of the case"
    with (folder / "seen.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    seen = {(row["case"], row["exporter"], row["mode"]): row["outcome"] for row in rows}
    assert seen["frozen", "torch.export", "dynamic"] == "narrow"
    assert len(rows) == 8
    worse = (folder / "seen.jsonl").read_text().replace('"outcome": "ok"', '"outcome": "wrong"', 1)
    (folder / "worse.jsonl").write_text(worse)
    assert run(monkeypatch, "compare", "seen.jsonl", "seen.jsonl") == 0
    assert "8 runs have the same outcome, 0 a different one." in capsys.readouterr().out
    assert run(monkeypatch, "compare", "seen.jsonl", "worse.jsonl") == 1
    found = capsys.readouterr()
    assert "ok → wrong (broke)" in found.out
    assert found.err.strip() == "exportlab: worse.jsonl is worse than seen.jsonl"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cases", "nothing.py"), "no such file: nothing.py"),
        (("--cases", "broken.py"), "broken.py raised SyntaxError"),
        (("--cases", "empty.py"), "empty.py declares no cases: decorate functions"),
        (("--cases", "unheard"), "the test suite has no case or family 'unheard'"),
        (("--cases", "mlp", "--exporters", "nope"), "no exporter 'nope'"),
        (("--cases", "mlp", "--modes", "sideways"), "no mode 'sideways': use static or dynamic"),
        (("--cases", "mlp", "--scheduler", "tcp://127.0.0.1:1"), "cannot connect to a scheduler at tcp://127.0.0.1:1"),
        (("--cases", "mlp", "-o", "missing/seen.jsonl"), "there is no folder missing"),
        (("--cases", "mlp", "-o", "empty.py"), "empty.py:1 is not a record"),
        (("--cases", "mlp", "--html", "missing/seen.html"), "there is no folder missing"),
        (("--cases", "mlp", "--html", "./seen.jsonl"), "seen.jsonl is the path of two outputs: use a different file for each"),
    ],
)
def test_bad_input_to_sweep(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    (folder / "empty.py").write_text("number = 3\n")
    code = run(monkeypatch, "sweep", "-o", "seen.jsonl", *arguments)
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert code == 2
    assert said in error
    assert files(folder) == []


def test_a_sweep_over_everything_has_to_be_meant(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("sweep", "-o", "all.jsonl", "--exporters", "torch.export", "--modes", "static")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(monkeypatch, *asked) == 2
    said = capsys.readouterr().err
    assert re.search(r"without --cases, this sweep has \d{3} runs of \d{3} cases: select cases with --cases, or confirm with --all", said)
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert run(monkeypatch, *asked) == 2
    assert "nothing was run: select cases with --cases" in capsys.readouterr().err
    assert files(folder) == []
    swept: list[int] = []
    monkeypatch.setattr("exportlab.cli.sweeping.sweep", lambda tasks, *_, **__: swept.append(len(tasks)) or [])
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert run(monkeypatch, *asked) == 0
    assert run(monkeypatch, *asked, "--all") == 0
    assert len(swept) == 2


class Terminal(io.StringIO):
    """Somebody who answers."""

    def isatty(self) -> bool:
        return True


def test_many_cases_with_the_same_outcomes_share_a_row() -> None:
    same = [Record(f"case_{i}", name, "static", Outcome.OK) for i in range(40) for name in ("a", "b")]
    table = matrix([*same, Record("bad", "a", "static", Outcome.WRONG), Record("bad", "b", "dynamic", Outcome.NARROW)], ("a", "b"))
    assert [row["case"] for row in table.rows] == ["bad", "case_0, case_1, case_2 and 37 more"]
    assert [row["a"] for row in table.rows] == ["wrong", "ok"]


def test_bad_input_to_compare(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "compare", "nothing.jsonl", "nothing.jsonl") == 2
    assert "no such file: nothing.jsonl" in capsys.readouterr().err
    assert run(monkeypatch, "compare", "models.py", "models.py") == 2
    assert "models.py:1 is not a record" in capsys.readouterr().err


def test_training_mode_is_exported_as_evaluation_and_said_so_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\n\n\ndef build():\n    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout()), (torch.ones(4, 3),)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "export", "model.py:build", "-o", "model.onnx") == 0
    assert capsys.readouterr().out.startswith("the model was in training mode; exported as eval()\n")
    assert run(monkeypatch, "export", "model.py:build", "-o", "other.onnx", "--train") == 1
    assert "exported as eval()" not in capsys.readouterr().out


DROPS = """
import torch
from exportlab import case, tensor

def given():
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.9)), (tensor("rows", 3),)

@case({"rows": (4, 7)})
def left():
    return given()

@case({"rows": (4, 7)})
def ready():
    module, args = given()
    return module.eval(), args
"""


@pytest.mark.parametrize(("name", "said"), [("left", True), ("ready", False)])
def test_every_command_looks_at_a_case_in_evaluation_mode_and_says_so_where_its_factory_left_it_in_training_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, said: bool
) -> None:
    (tmp_path / "drops.py").write_text(DROPS)
    monkeypatch.chdir(tmp_path)
    target, was = f"drops.py:{name}", "the model was in training mode; "
    for told, command in (
        (f"{was}exported as eval()\n", ("export", target, "-o", "model.onnx", "--exporter", "to_onnx")),
        (f"{was}verified as eval()\n", ("verify", "model.onnx", target)),
        (f"{was}exported as eval()\n", ("doctor", target, "--exporters", "to_onnx")),
        (f"{name}: {was}exported as eval(); @case(", ("sweep", "--cases", target, "--exporters", "to_onnx", "-o", "seen.jsonl")),
    ):
        code = run(monkeypatch, *command)
        found = capsys.readouterr().out
        assert code == 0, found
        assert (told in found) is said, found
    assert {(record.outcome, record.was_training) for record in read(tmp_path / "seen.jsonl")} == {(Outcome.OK, said)}


def test_a_file_in_training_mode_is_verified_so_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "export", "noisy.py:build", "-o", "model.onnx", "--train") == 0
    assert run(monkeypatch, "verify", "model.onnx", "noisy.py:build", "--train") == 0
    assert "as eval()" not in capsys.readouterr().out
    assert run(monkeypatch, "verify", "model.onnx", "noisy.py:build") == 1
    assert "the model was in training mode; verified as eval()" in capsys.readouterr().out


NOISY = """
import torch

class ByMode(torch.nn.Module):
    def forward(self, x):
        return x * 2 if self.training else x * 3

def build():
    return ByMode(), (torch.ones(4, 3),)
"""


def test_profile_says_where_the_time_goes_and_writes_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "export", "models.py:good", "-o", "good.onnx") == 0
    capsys.readouterr()
    asked = ("profile", "good.onnx", "--runs", "2", "--sizes", "n=5", "--providers", "CoreMLExecutionProvider")
    assert run(monkeypatch, *asked, "-o", "it.csv", "-o", "it.json", "-o", "it.svg") == 0
    said = capsys.readouterr().out
    assert all(head in said for head in ("operator ", "line of the source ", "module ", "the model itself, Linear"))
    assert said.count("CoreMLExecutionProvider is not in this ONNX Runtime") == 1
    assert "wrote it.csv\nwrote it.json\nwrote it.svg\n" in said
    assert files(folder) == ["good.onnx", "it.csv", "it.json", "it.svg"]
    numpy.savez(folder / "given.npz", **{name: numpy.ones((4, 3), "float32") for name in given_names(folder / "good.onnx")})
    assert run(monkeypatch, "profile", "good.onnx", "--runs", "1", "--inputs", "given.npz") == 0
    assert "made up" not in capsys.readouterr().out


def given_names(path: Path) -> list[str]:
    return [value.name for value in onnx.load(path).graph.input]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing.onnx",), "no such file: nothing.onnx"),
        (("models.py",), "models.py is not an ONNX model"),
        (("good.onnx",), "good.onnx: the file leaves n open: pass sizes, as in n=8"),
        (("good.onnx", "--sizes", "m=3"), "good.onnx: no input has an axis named 'm': the named axes are n"),
        (("good.onnx", "--sizes", "n"), "--sizes n is not NAME=SIZE, as in batch=8,seq=128"),
        (("good.onnx", "--inputs", "models.py"), "models.py is not a .npz archive of arrays: write one with numpy.savez"),
        (("good.onnx", "--inputs", "nothing.npz"), "no such file: nothing.npz"),
        (("good.onnx", "--inputs", "empty.npz"), "good.onnx: the input "),
        (("good.onnx", "--inputs", "empty.npz", "--sizes", "n=3"), "--inputs and --sizes can't be combined"),
        (
            ("good.onnx", "--sizes", "n=3", "-o", "it.txt"),
            "unsupported profile format '.txt': use a file that ends in .csv, .html",
        ),
        (("good.onnx", "--sizes", "n=3", "-o", "missing/it.csv"), "there is no folder missing"),
    ],
)
def test_bad_input_to_profile(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    given = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "good", [given], [onnx.ValueInfoProto(name="y")])
    onnx.save(onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 20)]), folder / "good.onnx")
    numpy.savez(folder / "empty.npz")
    before = files(folder)
    assert run(monkeypatch, "profile", *arguments) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1
    assert files(folder) == before


def test_a_file_that_onnx_runtime_refuses_is_no_profile(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = onnx.helper.make_graph([onnx.helper.make_node("NoSuchOperator", [], ["y"])], "bad", [], [onnx.ValueInfoProto(name="y")])
    onnx.save(onnx.helper.make_model(graph), folder / "bad.onnx")
    assert run(monkeypatch, "profile", "bad.onnx") == 1
    assert capsys.readouterr().err.startswith("exportlab: bad.onnx: ONNX Runtime rejects the file: ")
