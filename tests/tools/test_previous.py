"""Another release of a package: it stands before the packages of this environment, and what was made again stands for what it repeats."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import previous
import pytest

from exportlab.outcomes import Outcome
from exportlab.sweep.page.counts import Sweep
from exportlab.sweep.records import Record


def sweep(name: str, **outcomes: Outcome) -> Sweep:
    records = [Record(case, "dynamo", "dynamic", outcome, environment=name) for case, outcome in outcomes.items()]
    return Sweep(records, [{"id": name, "date": "2026-01-02", "torch_version": name}])


def test_what_was_made_again_stands_for_what_it_repeats() -> None:
    before = sweep("old", a=Outcome.OK, b=Outcome.OK)
    now = sweep("new", a=Outcome.WRONG, b=Outcome.OK, unasked=Outcome.WRONG)
    made = previous.over(before, now, sweep("again", a=Outcome.OK))
    assert {record.case: (record.outcome, record.environment) for record in made.records} == {"a": ("ok", "again"), "b": ("ok", "new")}
    assert made.versions() == ["torch again", "torch new"]


def test_only_what_differs_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, list[str], list[str], list[str]]] = []
    monkeypatch.setattr(previous, "swept", lambda python, cases, names, modes, path: asked.append((python, cases, names, modes)))
    monkeypatch.setattr(previous, "load_sweep", lambda path: sweep("old", a=Outcome.OK, b=Outcome.OK))
    previous.rerun_differences(tmp_path / "before.jsonl", sweep("new", a=Outcome.WRONG, b=Outcome.OK), tmp_path / "again.jsonl")
    assert asked == [(Path(sys.executable), ["a"], ["dynamo"], ["dynamic"])]


def test_a_release_stands_before_the_packages_of_this_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path)}))
    (packages / "onnxscript.py").write_text("__version__ = 'another'")
    previous.behind(packages, Path(sysconfig.get_path("purelib")))
    code = "import onnxscript, onnx_ir; print(onnxscript.__version__, onnx_ir.__name__)"
    done = subprocess.run([tmp_path / "bin/python", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "another onnx_ir\n", done.stderr


def test_a_sweep_that_was_ended_ends_the_command(tmp_path: Path) -> None:
    python = tmp_path / "python"
    for code, ends in ((0, False), (1, False), (2, True), (130, True)):  # 1: some cases cannot be built with this release
        python.write_text(f"#!/bin/sh\nexit {code}\n")
        python.chmod(0o755)
        with pytest.raises(SystemExit) if ends else pytest.MonkeyPatch.context():
            previous.swept(python, ["mlp"], ["dynamo"], ["static"], tmp_path / "x.jsonl")


def test_each_question_has_records_to_be_held_against() -> None:
    for question in (previous.ZOO, previous.ATLAS):
        assert len(question.cases()) > 50
        assert {record.exporter for record in question.records()} == set(question.exporters)
        assert {record.mode for record in question.records()} == set(question.modes)
