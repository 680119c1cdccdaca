"""The benchmarks of to_onnx: what they refuse before anything is measured, and what their helpers say. Not here: any time or peak."""

from __future__ import annotations
import __future__

import ast
import runpy
import sys
from pathlib import Path
from typing import Any

import pyperf
import pytest

from exportlab.measure import benchmark, timing

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = [FOLDER / "own_exporter.py", FOLDER / "memory.py", FOLDER / "how_we_measure.py"]
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


def test_time_a_node_is_in_microseconds() -> None:
    half = timing.Timings((), ({"to_onnx": 0.001}, {"to_onnx": 0.003}))
    run = benchmark.Run({"alone, 2 layers": half}, {"nodes": {"2": 10}})
    assert helpers(SCRIPTS[0], ALONE="alone, ")["per_node"](run)[2] == pytest.approx((100, 300))


def test_models_that_one_refuses_are_left_out_of_the_sum() -> None:
    one = timing.Timings((), ({"to_onnx": 1.0, "dynamo": 4.0},))
    run = benchmark.Run({"export, a": one, "export, b": timing.Timings((), ({"to_onnx": 9.0},))})
    assert helpers(SCRIPTS[0], EXPORT="export, ")["over_all"](run, "dynamo", "to_onnx").seen == (4.0,)


def test_peaks_are_told_over_the_weights() -> None:
    run = benchmark.Run({"1 kB": timing.Timings((), ({"to_onnx": 1100.0}, {"to_onnx": 1200.0}))}, {"weights": {"1 kB": 1000}})
    assert helpers(SCRIPTS[1])["over_weights"](run, "1 kB")["to_onnx"].seen == (1.1, 1.2)


def test_a_process_that_fails_is_no_measurement() -> None:
    measured = helpers(SCRIPTS[1], PROCESS="raise SystemExit('no such way')")["measured"]
    with pytest.raises(AssertionError, match="no such way"):
        measured("to_onnx", 2)


def test_how_often_one_is_fooled_is_counted_by_comparison() -> None:
    rounds = tuple({"A": a, "B": 1.0} for a in (1.2, 1.3, 0.9, 1.1))
    told = helpers(SCRIPTS[2], NAIVE="naive")
    run = benchmark.Run(dict.fromkeys(("naive", "turns"), timing.Timings((), rounds)), {"rounds": 2})
    assert [ratio.seen for ratio in told["comparisons"](run, "turns")] == [(1.2, 1.3), (0.9, 1.1)]
    assert told["of_means"](run) == pytest.approx([1.25, 1.0])
    assert told["fooled"](run, "naive") == 0.5


def test_a_sum_is_of_each_round() -> None:
    assert timing.summed([TIMES, TIMES], ("a",)).rounds == ({"a": 2.0}, {"a": 6.0})


def test_bytes_are_saved_as_bytes(tmp_path: Path) -> None:
    (found,) = pyperf.BenchmarkSuite.load(str(benchmark.save(tmp_path / "a.json", {"m": timing.summed([TIMES], "a")}, {}, unit="byte")))
    assert found.get_unit() == "byte"
    assert found.get_name() == "m, a"
