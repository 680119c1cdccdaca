"""Running what is stale: what passes is noted item by item, and nothing runs twice."""

from __future__ import annotations

from pathlib import Path

import pytest
import run_stale
from run_stale import Options, Stage

OPTIONS = Options("0", [], ["to_onnx"])


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, tuple[str, ...]]:
    """A stage of two items, the second of which fails; what they read."""
    reads = {"good": ("1 a", "1 b"), "bad": ("1 b",)}

    def passing(items: list[str], stamps: run_stale.Stamps, _: Options) -> int:
        for item in items:
            print(f"{item} runs", flush=True)
            if item != "bad":
                stamps.keep(item)
        return int("bad" in items)

    monkeypatch.setattr(run_stale, "BUILD", tmp_path)
    monkeypatch.setitem(run_stale.STAGES, "pytest", Stage("things", lambda _: dict(reads), passing))
    return reads


def test_what_passed_does_not_run_again_and_what_failed_does(stage: dict[str, tuple[str, ...]], capfd: pytest.CaptureFixture[str]) -> None:
    assert run_stale.run("pytest", OPTIONS) == 1
    assert capfd.readouterr().out == "pytest: 2 of 2 things run: not run before\ngood runs\nbad runs\n"
    assert run_stale.run("pytest", OPTIONS) == 1
    assert capfd.readouterr().out == "pytest: 1 of 2 things run: not run before\nbad runs\n"
    del stage["bad"]
    assert run_stale.run("pytest", OPTIONS) == 0
    assert capfd.readouterr().out == "pytest: 0 of 1 things, nothing to run\n"
    stage["good"] = ("1 a", "2 b")
    assert run_stale.run("pytest", OPTIONS) == 0
    assert capfd.readouterr().out == "pytest: 1 of 1 things run: b changed\ngood runs\n"


def test_what_passed_on_another_python_runs_again(
    stage: dict[str, tuple[str, ...]], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del stage["bad"]
    assert run_stale.run("pytest", OPTIONS) == 0
    monkeypatch.setattr(run_stale, "PYTHON", "3.99 Python")
    capfd.readouterr()
    assert run_stale.run("pytest", OPTIONS) == 0
    assert capfd.readouterr().out == "pytest: 1 of 1 things run: Python changed\ngood runs\n"


def test_every_case_of_the_quick_matrix_reads_its_own_file_and_what_is_expected_of_it() -> None:
    found = run_stale.matrix(OPTIONS)
    assert len(found) == 20
    for case, state in found.items():
        files = {line.partition(" ")[2] for line in state}
        assert "exportlab/verification/verify.py" in files
        assert 1 <= len({name.partition(":")[0] for name in files if "/zoo/" in name}) < 9
        assert any(name.startswith(f"matrix.csv: {case}, to_onnx, ") for name in files)


def test_each_stage_has_items() -> None:
    for name in ("recipes", "pytest"):
        items = run_stale.STAGES[name].items(Options("0", ["gallery"], []))
        assert len(items) > 30
        assert all((run_stale.ROOT / item).is_file() for item in items)
