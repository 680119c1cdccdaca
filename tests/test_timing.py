"""Rounds, ratios and the pyperf file, on a clock that the test moves. Not here: any real time."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyperf
import pytest

from exportlab.timing import Ratio, Timings, environment, interleaved, machine, save

BOTH = Timings(({"a": 9.0, "b": 9.0},), ({"a": 2.0, "b": 1.0}, {"a": 6.0, "b": 2.0}))


class Clock:
    """Stands still until something takes time."""

    def __init__(self) -> None:
        self.now, self.log = 0.0, []

    def __call__(self) -> float:
        return self.now

    def taking(self, name: str, seconds: float) -> Callable[[], Callable[[], None]]:
        """A maker whose preparation takes 100 seconds, and whose call `seconds`."""

        def call() -> None:
            self.log.append(name)
            self.now += seconds

        def make() -> Callable[[], None]:
            self.now += 100.0
            return call

        return make


def test_rounds_are_interleaved_and_begin_with_the_next_name() -> None:
    clock = Clock()
    groups = {group: {name: clock.taking(name, 1.0) for name in names} for group, names in ((1, "abc"), (2, "AB"))}
    interleaved(groups, 2, clock=clock)
    assert "".join(clock.log) == "abcAB" + "bcaBA" + "cabAB"


def test_only_the_call_is_timed_and_the_first_round_is_kept_apart() -> None:
    clock = Clock()
    found = interleaved({"group": {"a": clock.taking("a", 2.0), "b": clock.taking("b", 0.5)}}, 3, clock=clock)["group"]
    assert found.discarded == ({"a": 2.0, "b": 0.5},)
    assert found.of("a") == (2.0, 2.0, 2.0)
    assert list(found.rounds[0]) == ["a", "b"]


@pytest.mark.parametrize(("budget", "counted"), [(0.0, 3), (450.0, 4), (1e9, 9)])
def test_the_budget_ends_the_rounds_but_not_before_the_least(budget: float, counted: int) -> None:
    clock, told = Clock(), []
    found = interleaved({1: {"a": clock.taking("a", 1.0)}}, 9, budget=budget, tell=told.append, clock=clock)
    assert len(found[1].rounds) == counted
    assert told[0] == "round 1 of 10, 101 s"
    assert len(told) == counted + 1


def test_the_garbage_collector_is_left_as_it_was() -> None:
    before = gc.get_freeze_count()
    with pytest.raises(ZeroDivisionError):
        interleaved({1: {"a": lambda: lambda: 1 / 0}}, 1)
    assert gc.get_freeze_count() == before
    assert gc.isenabled()


def test_ratios_and_growth_are_paired_by_round() -> None:
    assert BOTH.ratio("a", "b").seen == (2.0, 3.0)
    assert BOTH.median("a") == 4.0
    assert BOTH.growth("b", Timings((), ({"b": 0.5}, {"b": 4.0}))).seen == (2.0, 0.5)


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ((3.9, 4.1, 4.4), "4.1x (3.9–4.4)"),
        ((0.25, 0.5, 0.75), "0.50x (0.25–0.75)"),
        ((1.04, 1.1, 12.3), "1.10x (1.04–12)"),
        ((0.9, 1.2, 1.3), "no difference seen (0.90–1.30)"),
        ((1.0, 1.2, 1.3), "no difference seen (1.00–1.30)"),
    ],
)
def test_a_ratio_says_when_no_difference_was_seen(seen: tuple[float, ...], text: str) -> None:
    assert str(Ratio(seen)) == text


def test_pyperf_loads_what_is_saved(tmp_path: Path) -> None:
    path = save(tmp_path / "times.json", {"model": BOTH}, environment(["torch"]))
    suite = pyperf.BenchmarkSuite.load(str(path))
    assert suite.get_benchmark_names() == ["model, a", "model, b"]
    benchmark = suite.get_benchmark("model, a")
    assert benchmark.get_values() == (2.0, 6.0)
    assert benchmark.get_runs()[0].warmups == ((1, 9.0),)
    assert {"torch_version", "cpu_count", "torch_threads", "python_version"} <= set(benchmark.get_metadata())


def test_pyperf_compares_two_files(tmp_path: Path) -> None:
    slower = Timings((), tuple({name: 2 * took for name, took in seen.items()} for seen in BOTH.rounds))
    files = [str(save(tmp_path / f"{i}.json", {"model": timings}, {})) for i, timings in enumerate((BOTH, slower))]
    told = subprocess.run([sys.executable, "-m", "pyperf", "compare_to", "-v", *files], capture_output=True, text=True, check=True)
    assert "2.00x slower" in told.stdout


def test_nothing_names_the_machine(tmp_path: Path) -> None:
    text = save(tmp_path / "times.json", {"model": BOTH}, environment(["torch"])).read_text(encoding="utf-8") + machine(["torch"])
    for secret in (socket.gethostname(), str(tmp_path), sys.prefix, "boot_time"):
        assert secret not in text


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="system"):
        save(tmp_path / "times.json", {"model": BOTH}, {"system": ""})
    assert [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()] == ["old"]
