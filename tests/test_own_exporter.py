"""The benchmarks of to_onnx: what they refuse before anything is measured, and what their helpers say. Not here: any time or peak."""

from __future__ import annotations
import __future__

import ast
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyperf
import pytest

from exportlab import timing

FOLDER = Path(__file__).parent.parent / "benchmarks"
SCRIPTS = [FOLDER / "own_exporter.py", FOLDER / "memory.py"]
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef)
TIMES = timing.Timings((), ({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 3.0}))


def helpers(script: Path, **variables: Any) -> dict[str, Any]:
    """The functions of a page, nothing of it run; `variables` are what they read."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, KEPT) and not getattr(node, "decorator_list", ())]
    space = dict(variables)
    exec(compile(tree, str(script), "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True), space)
    return space


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
@pytest.mark.parametrize("wrong", [("--quik",), ("--json", "no/such/folder/a.json"), ("--json", "."), ("--plot", "a.xyz")])
def test_a_wrong_argument_is_said_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, script: Path, wrong: tuple[str, ...]
) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "argv", [str(script), *wrong])
    with pytest.raises(SystemExit):
        runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_figure_is_told_with_its_range_on_both_sides_of_one(script: Path) -> None:
    said = helpers(script)["spread"](timing.Ratio((0.5, 1.0, 2.5)))
    assert said.startswith("1")
    assert "(0.5" in said
    assert "–2.5" in said


def test_a_goal_is_judged_in_a_full_run_alone() -> None:
    goals = [helpers(SCRIPTS[0], asked=SimpleNamespace(quick=quick))["goal"] for quick in (True, False)]
    assert goals[0]("ratio", "1.3x", "≤ 1.2", False) == "ratio: 1.3x"
    assert goals[1]("ratio", "1.3x", "≤ 1.2", False) == "ratio: 1.3x; goal ≤ 1.2: MISSED"
    assert goals[1]("ratio", "1.1x", "≤ 1.2", True) == "ratio: 1.1x; goal ≤ 1.2: reached"


def test_time_a_node_is_in_microseconds() -> None:
    conversions = {2: timing.Timings((), ({"conversion": 0.001}, {"conversion": 0.003}))}
    assert helpers(SCRIPTS[0], nodes={2: 10}, conversions=conversions)["per_node"](2).seen == pytest.approx((100, 300))


def test_peaks_are_those_of_each_round() -> None:
    seen = {"to_onnx": [{"saved": 0.1}, {"saved": 0.3}]}
    assert helpers(SCRIPTS[1], seen=seen)["peaks"]("to_onnx", "saved").seen == (0.1, 0.3)


def test_a_process_that_fails_is_no_measurement() -> None:
    measured = helpers(SCRIPTS[1], PROCESS="raise SystemExit('no such way')", width=2, weights=64)["measured"]
    with pytest.raises(AssertionError, match="no such way"):
        measured("to_onnx")


def test_a_sum_is_of_each_round() -> None:
    assert timing.summed([TIMES, TIMES], ("a",)).rounds == ({"a": 2.0}, {"a": 6.0})


def test_bytes_are_saved_as_bytes(tmp_path: Path) -> None:
    (found,) = pyperf.BenchmarkSuite.load(str(timing.save(tmp_path / "a.json", {"m": timing.summed([TIMES], "a")}, {}, unit="byte")))
    assert found.get_unit() == "byte"
    assert found.get_name() == "m, a"
