"""Arguments of the commands, right and wrong, over files that are right and wrong: an exit code, one line, and nothing half-written."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from hostile import KINDS_OF_PATH, LONG, X, in_folder, made, path_in
from hypothesis import event, given
from hypothesis import strategies as st
from promise import promised

from exportlab import exporters, quiet, to_onnx
from exportlab.cli import main
from exportlab.doctor import run, terminal
from exportlab.exporters.artifact import Artifact
from exportlab.files import atomic_write
from exportlab.outcomes import Outcome
from exportlab.sweep import runner
from exportlab.sweep.records import Record, environment

FILES = {
    "fine.py": """
import torch
from torch import nn
from exportlab import case, tensor
class Raises(nn.Module):
    def forward(self, x):
        raise RuntimeError("first line\\nsecond line \\x1b[2J")
class Recurses(nn.Module):
    def forward(self, x):
        return self(x)
class Exits(nn.Module):
    def forward(self, x):
        raise SystemExit(0)
class NotBegun(nn.Module):
    def __init__(self): pass
@case(dims={"n": (4, 1)})
def good(): return nn.Linear(3, 2), (tensor("n", 3),)
@case(dims={"n": (4, 1)})
def undeclared(): return nn.Linear(3, 2), (tensor("q", 3),)
@case()
def crashes(): raise ValueError("\\x1b[2J\\n\\n")
def plain(): return nn.Linear(3, 2), (torch.ones(4, 3),)
def several(): return nn.Linear(3, 2), [(torch.ones(4, 3),), (torch.ones(2, 3),)]
def in_training(): return nn.Dropout(), (torch.ones(4, 3),)
def wrong_size(): return nn.Linear(3, 2), (torch.ones(4, 4),)
def raises(): return Raises(), (torch.ones(4, 3),)
def recurses(): return Recurses(), (torch.ones(4, 3),)
def exits(): return Exits(), (torch.ones(4, 3),)
def not_begun(): return NotBegun(), (torch.ones(4, 3),)
def on_meta(): return nn.Linear(3, 2, device="meta"), (torch.ones(4, 3),)
def nothing(): return None
def text(): return "x"
def no_module(): return 3, (torch.ones(3),)
def no_samples(): return nn.Linear(3, 2), []
def endless():
    found = []
    found.append(found)
    return nn.Linear(3, 2), (found,)
def fails(): raise RuntimeError("no weights \\x1b[31m here\\nsecond line")
def says_nothing(): raise RuntimeError()
def ends(): raise SystemExit("bye")
def interrupts(): raise KeyboardInterrupt
def takes(x): return x
def deep(): return deep()
def prints():
    print("\\x1b[2J" * 3)
    return nn.Linear(3, 2), (torch.ones(4, 3),)
number = 3
module = nn.Identity()
Class = nn.Linear
""",
    "raises.py": "raise RuntimeError('at import\\nsecond line')\n",
    "exits.py": "import sys\nsys.exit(0)\n",
    "broken.py": "def f(:\n",
    "empty.py": "",
    "binary.py": "\0\x01",
    "imports.py": "import not_there\n",
    "one.py": "from two import f\ng = 1\n",
    "two.py": "from one import g\nf = 1\n",
    "deep.py": "x = " + "(" * 300 + ")" * 300 + "\n",
    "recursing.py": "def f(): return f()\nf()\n",
    "json.py": "import json\ndef f(): return json.nothing\n",
    "latin.py": "# \u00e9\nx = '\u00e9'\n",
    "a b.py": "def f(): return 1\n",
}
NAMES = [
    "good", "undeclared", "crashes", "plain", "several", "in_training", "wrong_size", "raises", "recurses", "exits", "not_begun", "on_meta",
    "nothing", "text", "no_module", "no_samples", "endless", "fails", "says_nothing", "ends", "takes", "deep", "prints", "number", "module",
    "Class", "__name__", "__file__", "not_there", "", "a b", "a\nb", "\x1b[2J", "f", "g", LONG,
]  # fmt: skip
LINEAR = to_onnx(made("linear"), (X,)).model_proto.SerializeToString()
HERE = environment(1)
SEEN = "".join(
    f"{line}\n"
    for line in (json.dumps({"schema": 1, "environment": HERE}), Record("mlp", "echo", "static", Outcome.OK, environment=HERE["id"]).line())
)
RIGHT = ["good", "plain", "several", "prints"]


class Echo(Artifact):
    """Runs the module itself."""

    exporter = "echo"

    def __init__(self, module: Any) -> None:
        self.module = module
        self.asked = exporters.Interface()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def save(self, path: str | Path) -> Path:
        """Write a few bytes."""
        with atomic_write(path) as draft:
            draft.write_bytes(b"echo")
        return Path(path)

    def ops(self) -> Counter[str]:
        """Return none."""
        return Counter()


class Echoes:
    """Exports at once; refuses whatever opset."""

    name = "echo"

    def missing(self) -> None:
        """It is here."""

    def stage(self, error: Exception) -> Outcome:
        """Return the second stage."""
        return Outcome.CONVERT

    def export(self, module: Any, args: Any = (), kwargs: Any = None, *, dynamic_shapes: Any = None, **options: Any) -> Artifact:
        """Return the module itself."""
        if options:
            raise RuntimeError("no such\nopset \x1b[2J")
        return Echo(module)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One exporter that takes no time, no examination beyond the first look, and no workers."""
    events = run.Examination.events
    monkeypatch.setattr(exporters, "BUILT_IN", (*exporters.BUILT_IN, Echoes()))
    monkeypatch.setattr(terminal, "warm_up", lambda exporters: None)
    monkeypatch.setattr(run.Examination, "events", lambda self: iter([next(events(self))]))
    monkeypatch.setattr(runner, "Crew", NoCrew)


class NoCrew:
    """Has a record of every task."""

    def __init__(self, setup: Any) -> None:
        pass

    def run(self, task: Any) -> Record:
        """Return it."""
        return Record(task.case, task.exporter, task.mode, Outcome.OK, task.round, seconds={"export": 0.5})

    def kill(self) -> None:
        """There is nobody."""


def flags(**known: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """Some of these options, in any order, repeated, or without their values."""
    spelled = {f"--{name.replace('_', '-')}": value for name, value in known.items()}
    one = st.sampled_from(sorted(spelled)).flatmap(lambda flag: spelled[flag].map(lambda value: [flag, value]))
    alone = st.sampled_from([*spelled, "--nothing", "-x", "--", "--help", ""]).map(lambda flag: [flag])
    return st.lists(st.one_of(one, one, one, alone), max_size=3).map(lambda parts: list(chain.from_iterable(parts)))


numbers = st.sampled_from(["1", "0", "-1", "nan", "inf", "-inf", "1e400", "0.5", "x", "", "9" * 30, "2", "20"])
files = st.sampled_from(
    [
        *FILES,
        "fine.py",
        "fine.py",
        "not_there.py",
        "folder",
        "folder.py",
        "pipe.py",
        "fine",
        "",
        "../fine.py",
        f"{LONG}.py",
        "a\nb.py",
        "a\0b.py",
    ]
)
targets = st.one_of(
    st.builds(lambda name: f"fine.py:{name}", st.sampled_from(RIGHT)),
    st.builds(lambda name: f"fine.py:{name}", st.sampled_from(NAMES)),
    st.builds(lambda file, name: f"{file}:{name}", files, st.sampled_from(NAMES)),
    st.sampled_from(["fine.py", ":", "", "fine.py:good:plain", "\ud800"]),
)
places = st.sampled_from(KINDS_OF_PATH)
names = st.sampled_from(["echo", "echo,echo", "nope", "", ",", "to\nonnx", "\x1b[2J"])
opset = st.sampled_from(["20", "x", "-1"])
flag = st.just("--static")


def outputs(flag: str, likely: str) -> st.SearchStrategy[list[str]]:
    """The output, mostly there and right."""
    return st.one_of(
        st.just([flag, likely]), st.just([flag, likely]), places.map(lambda kind: [flag, f"<{kind}>"]), st.just([]), st.just([flag])
    )


commands = st.one_of(
    st.builds(
        lambda target, output, further: ["export", target, *output, *further],
        targets,
        outputs("-o", "new.onnx"),
        flags(exporter=names, opset_version=opset).map(lambda given: ["--exporter", "echo", *given])
        | st.sampled_from([["--force"], ["--static"], ["--train"]]).map(lambda given: ["--exporter", "echo", *given]),
    ),
    st.builds(
        lambda file, target, further: ["verify", file, target, *further],
        st.sampled_from(["linear.onnx", "linear.onnx", "fine.py", "not there"]) | places.map(lambda kind: f"<{kind}>"),
        targets,
        flags(rtol=numbers, atol=numbers),
    ),
    st.builds(
        lambda cases, output, further: ["sweep", *cases, *output, "--exporters", "echo", *further],
        st.one_of(targets, st.sampled_from(["mlp", "mlp,mlp", "basics", "nope", ",", "fine.py"])).map(lambda cases: ["--cases", cases])
        | st.just([]),
        outputs("-o", "new.jsonl"),
        flags(
            exporters=names,
            modes=st.sampled_from(["static", "dynamic", "x", ""]),
            rounds=st.sampled_from(["1", "2", "0", "-1", "x"]),
            processes=st.sampled_from(["1", "0", "x"]),
            timeout=numbers,
            memory=numbers,
            threads=numbers,
            pyperf=places.map(lambda kind: f"<{kind}>"),
            csv=places.map(lambda kind: f"<{kind}>"),
            html=places.map(lambda kind: f"<{kind}>"),
            scheduler=st.sampled_from(["x", "tcp://", "\n"]),
        ),
    ),
    st.builds(
        lambda before, after: ["compare", before, after],
        *[st.sampled_from(["seen.jsonl", "fine.py"]) | places.map(lambda kind: f"<{kind}>")] * 2,
    ),
    st.builds(
        lambda target, further: ["doctor", target, "--exporters", "echo", *further],
        targets,
        flags(
            output=places.map(lambda kind: f"<{kind}>"),
            save=places.map(lambda kind: f"<{kind}>"),
            limit=numbers,
            memory=numbers,
            exporters=names,
        ),
    ),
    st.lists(
        st.sampled_from(["export", "verify", "sweep", "doctor", "compare", "--help", "--version", "errors", "", "x\ny", "-o"]),
        min_size=1,
        max_size=2,
    ),
)


def ended(arguments: list[str]) -> tuple[int, str, str]:
    """How a command ended, what it said on standard error, and what it printed."""
    said, printed = io.StringIO(), io.StringIO()
    sys.argv = ["exportlab", *arguments]
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed), torch.random.fork_rng():  # it has a process of its own
        try:
            main()
            code: Any = 0
        except SystemExit as error:
            code = error.code
    assert "\x1b[2J" not in printed.getvalue().replace("\x1b[2J" * 3, "")
    return int(code or 0), said.getvalue(), printed.getvalue()


@given(commands)
def test_a_command(arguments: list[str]) -> None:
    with in_folder() as folder:
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="latin-1")
        (folder / "linear.onnx").write_bytes(LINEAR)
        (folder / "seen.jsonl").write_text(SEEN)
        given = [path_in(folder, word[1:-1]) if word[1:-1] in KINDS_OF_PATH else word for word in arguments]
        judge(folder, given)


def judge(folder: Path, arguments: list[str]) -> None:
    """Run a command, and hold how it ended against the rules."""
    quiet()  # as every command does first, for good
    before = sorted(folder.rglob("*"))
    found: list[tuple[int, str, str]] = []
    promised(lambda: found.append(ended(arguments)))
    code, said, printed = found[0]
    event(f"{arguments[:1]} {code}")
    assert code in (0, 1, 2)
    assert "Traceback" not in said
    assert "\x1b[2J" not in said
    if code == 2:
        last = said.splitlines()[-1:]
        assert (last and last[0].startswith(("exportlab: ", "Error: "))) or (arguments[0] == "doctor" and printed), said
    left = [path for path in sorted(folder.rglob("*")) if path not in before and "__pycache__" not in path.parts]
    assert code == 0 or left == [] or arguments[0] == "doctor"  # whose report says why, too
