"""The benchmarks of to_onnx: what they refuse before anything is measured, and what their helpers say."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyperf
import pytest

from exportlab.measure import benchmark, timing

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = [FOLDER / "own_exporter.py", FOLDER / "memory.py", FOLDER / "how_we_measure.py"]
TIMES = timing.Timings((), ({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 3.0}))


class OpenedError(Exception):
    """A page has come to the line that shows what it found before."""


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], dict[str, Any]]:
    """Return the names that a page has defined where it is opened, by which line nothing has been measured."""

    def names(script: Path) -> dict[str, Any]:
        seen: list[dict[str, Any]] = []

        def opened(page: benchmark.Page, finding: benchmark.Finding, *_: object) -> None:
            seen.append(finding.__globals__)
            raise OpenedError

        monkeypatch.setattr(benchmark.Page, "open", opened)
        monkeypatch.setattr(sys, "argv", [str(script), "--quick"])
        with pytest.raises(OpenedError):
            runpy.run_path(str(script), run_name="__main__")
        return seen[0]

    return names


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
@pytest.mark.parametrize("wrong", [("--quik",), ("--json", "no/such/folder/a.json"), ("--json", "."), ("--plot", "a.xyz")])
def test_a_wrong_argument_is_said_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, script: Path, wrong: tuple[str, ...]
) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "argv", [str(script), *wrong])
    with pytest.raises(SystemExit):
        runpy.run_path(str(script), run_name="__main__")


def test_time_a_node_is_in_microseconds(helpers: Callable[[Path], dict[str, Any]]) -> None:
    half = timing.Timings((), ({"to_onnx": 0.001}, {"to_onnx": 0.003}))
    page = helpers(SCRIPTS[0])
    run = benchmark.Run({f"{page['ALONE']}2 layers": half}, {"nodes": {"2": 10}})
    assert page["per_node"](run)[2] == pytest.approx((100, 300))


def test_models_that_one_refuses_are_left_out_of_the_sum(helpers: Callable[[Path], dict[str, Any]]) -> None:
    one = timing.Timings((), ({"to_onnx": 1.0, "dynamo": 4.0},))
    run = benchmark.Run({"export, a": one, "export, b": timing.Timings((), ({"to_onnx": 9.0},))})
    assert helpers(SCRIPTS[0])["over_all"](run, "dynamo", "to_onnx").seen == (4.0,)


def test_peaks_are_told_over_the_weights(helpers: Callable[[Path], dict[str, Any]]) -> None:
    run = benchmark.Run({"1 kB": timing.Timings((), ({"to_onnx": 1100.0}, {"to_onnx": 1200.0}))}, {"weights": {"1 kB": 1000}})
    assert helpers(SCRIPTS[1])["over_weights"](run, "1 kB")["to_onnx"].seen == (1.1, 1.2)


def test_a_process_tells_what_it_measured_or_is_no_measurement() -> None:
    told = "import json, os, sys; print(json.dumps({sys.argv[1]: os.environ['HELD']}))"
    assert benchmark.in_process(told, "way", HELD="2") == {"way": "2"}
    with pytest.raises(RuntimeError, match="no such way"):
        benchmark.in_process("raise SystemExit('no such way')")


def test_how_often_one_is_fooled_is_counted_by_comparison(helpers: Callable[[Path], dict[str, Any]]) -> None:
    rounds = tuple({"A": a, "B": 1.0} for a in (1.2, 1.3, 0.9, 1.1))
    told = helpers(SCRIPTS[2])
    run = benchmark.Run(dict.fromkeys((told["NAIVE"], "turns"), timing.Timings((), rounds)), {"rounds": 2})
    assert [ratio.seen for ratio in told["comparisons"](run, "turns")] == [(1.2, 1.3), (0.9, 1.1)]
    assert told["of_means"](run) == pytest.approx([1.25, 1.0])
    assert told["fooled"](run, told["NAIVE"]) == 0.5


def test_a_sum_is_of_each_round() -> None:
    assert timing.summed([TIMES, TIMES], ("a",)).rounds == ({"a": 2.0}, {"a": 6.0})


def test_bytes_are_saved_as_bytes(tmp_path: Path) -> None:
    (found,) = pyperf.BenchmarkSuite.load(str(benchmark.save(tmp_path / "a.json", {"m": timing.summed([TIMES], "a")}, {}, unit="byte")))
    assert found.get_unit() == "byte"
    assert found.get_name() == "m, a"
