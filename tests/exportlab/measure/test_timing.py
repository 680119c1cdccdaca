"""Rounds, ratios, the stored run and a page's command line, on a clock that the test moves."""

from __future__ import annotations

import gc
import random
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pyperf
import pytest
import scipy.stats
import torch
from matplotlib import pyplot

from exportlab.measure import benchmark
from exportlab.measure.benchmark import environment, load, machine, save
from exportlab.measure.timing import Ratio, Timings, chance, frozen, interleaved

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


def test_the_seconds_of_one_call_are_those_of_all_by_their_number() -> None:
    together = Timings(({"a": 8.0},), ({"a": 4.0}, {"a": 6.0}))
    assert together.each(4) == Timings(({"a": 2.0},), ({"a": 1.0}, {"a": 1.5}))


def test_ratios_and_growth_are_paired_by_round() -> None:
    assert BOTH.ratio("a", "b").seen == (2.0, 3.0)
    assert BOTH.median("a") == 4.0
    assert BOTH.growth("b", Timings((), ({"b": 0.5}, {"b": 4.0}))).seen == (2.0, 0.5)


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ((3.9, 4.1, 4.4), "4.1x (3.6–4.8)"),  # of so few rounds, Student's interval
        ((0.25, 0.5, 0.75), "no difference seen (0.11–1.81)"),
        ((1.0004, 1.2, 1.2, 1.2, 1.2, 1.2), "1.20x (1.0004–1.20)"),
        ((0.25, 0.3, 0.5, 0.5, 0.6, 0.75), "0.50x (0.25–0.75)"),
        ((1.04, 1.1, 1.1, 1.1, 1.1, 12.3), "1.10x (1.04–12)"),
        ((0.9, 1.2, 1.3), "no difference seen (0.69–1.81)"),
        ((1.0, 1.2, 1.2, 1.2, 1.2, 1.3), "no difference seen (1.00–1.30)"),
    ],
)
def test_a_ratio_says_when_no_difference_was_seen(seen: tuple[float, ...], text: str) -> None:
    assert str(Ratio(seen)) == text


def test_no_difference_is_said_exactly_when_the_printed_interval_holds_1() -> None:
    drawn = random.Random(0)
    for rounds in (1, 2, 3, 4, 5, 6, 9):
        for _ in range(1000):
            ratio = Ratio(tuple(drawn.lognormvariate(0.05, 0.1) for _ in range(rounds)))
            low, high = map(float, re.search(r"\((.+)–(.+)\)", str(ratio)).groups())
            assert (low <= 1 <= high) == ("no difference seen" in str(ratio)) == (not ratio.differs), ratio


def test_the_interval_of_few_rounds_is_students() -> None:
    logs = numpy.log([1.02, 1.08, 1.11])
    wanted = scipy.stats.t.interval(0.95, 2, loc=logs.mean(), scale=logs.std(ddof=1) / 3**0.5)
    assert Ratio((1.02, 1.08, 1.11)).interval == pytest.approx(numpy.exp(wanted), rel=1e-3)


def test_equals_that_chance_parts_are_seldom_called_different() -> None:
    drawn = random.Random(0)
    for rounds in (2, 3, 4, 5, 6, 9):
        equals = [Ratio(tuple(drawn.lognormvariate(0, 0.1) for _ in range(rounds))) for _ in range(2000)]
        assert sum(ratio.differs for ratio in equals) / len(equals) < 0.06, rounds


def test_what_is_clearly_different_is_called_so_after_three_rounds() -> None:
    assert Ratio((4.0, 5.0, 6.0)).differs
    assert not Ratio((1.01, 1.2, 1.5)).differs


def test_what_never_varies_differs_unless_it_is_1() -> None:
    assert Ratio((1.2,)).differs
    assert Ratio((2.0, 2.0, 2.0)).differs
    assert not Ratio((1.0, 1.0)).differs


@pytest.mark.parametrize(("rounds", "told"), [(6, "1 time in 32"), (13, "1 time in 4,096"), (3, "at most 1 time in 20")])
def test_chance_is_told_by_the_number_of_rounds(rounds: int, told: str) -> None:
    assert chance(rounds) == told


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


METADATA = {"date": "2026-11-02 09:13:22.123", "cpu_count": 2, "torch_threads": 1, "system": "Linux x86_64", "kind": "full"}


def test_a_run_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    other = Timings((), ({"c, with a comma": 3.0},))
    facts = {"outcomes": {"a": "ok"}, "apart": 1e-6}
    units = {"model, large": "byte"}
    run = load(save(tmp_path / "a.json", {"model, large": BOTH, "other": other}, METADATA, units, facts))
    assert run.times == {"model, large": BOTH, "other": other}
    assert run["model, large"].ratio("a", "b").seen == (2.0, 3.0)
    assert run.facts == facts
    assert run.rounds == 1
    assert run.origin == "Full run of 2 November 2026 (Linux x86_64, 2 cores, 1 torch thread)"


def test_a_file_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    pyperf.BenchmarkSuite([pyperf.Benchmark([pyperf.Run([1.0], metadata={"name": "x"}, collect_metadata=False)])]).dump(str(path))
    with pytest.raises(ValueError, match="x has no title"):
        load(path)


@pytest.fixture(autouse=True)
def _drawn() -> Iterator[None]:
    yield
    pyplot.close("all")


def page(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> benchmark.Page:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "argv", ["a.py", *arguments])
    monkeypatch.setattr(benchmark, "DATA", folder)
    return benchmark.page("a", "fast?", quick="less")


def test_a_page_prints_no_warnings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        page(monkeypatch, tmp_path, "--quick")
        warnings.warn("a shape became a constant", torch.jit.TracerWarning, stacklevel=1)
    assert caught == []


def draw(run: benchmark.Run) -> None:
    pyplot.figure()


def taken(run: benchmark.Run) -> benchmark.Lines:
    return f"b takes {run['m'].median('b')} s", "a takes 1"


def test_a_quick_run_tells_the_stored_one_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page(monkeypatch, tmp_path, "--quick").open(taken, draw)
    assert "No full run is stored yet: python benchmarks/a.py --json benchmarks/data/a.json" in capsys.readouterr().out
    save(tmp_path / "a.json", {"m": BOTH}, METADATA)
    page(monkeypatch, tmp_path, "--quick").open(taken, draw)
    said = "b takes 1.5 s.\n\n- a takes 1\n\nFull run of 2 November 2026 (Linux x86_64, 2 cores, 1 torch thread, 2 rounds).\n"
    assert capsys.readouterr().out == said
    page(monkeypatch, tmp_path).open(taken, draw)
    assert capsys.readouterr().out == ""


def test_a_run_is_kept_drawn_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = page(monkeypatch, tmp_path, "--json", str(tmp_path / "b.json"), "--plot", str(tmp_path / "b.png"))
    run = made.keep({"m": BOTH}, facts={"n": {1: 2}}, packages=["torch"])
    made.close(run, lambda run: (f"found {run.facts['n']['1']}",), draw)
    assert load(tmp_path / "b.json").metadata["kind"] == "full"
    assert (tmp_path / "b.png").stat().st_size > 1000
    said = capsys.readouterr().out
    assert said.startswith("found 2.\n\nThis run was full, 2 rounds.\nBy chance alone, equals would look different at most 1 time in 20.")


def test_a_run_of_one_model_is_added_to_those_of_the_same_machine_and_versions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["a.py", "--only", "m", "--json", str(tmp_path / "b.json")])
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    made = benchmark.page("a", "fast?", quick="less", models=["m", "n"])
    assert made.earlier().times == {}
    made.keep({"m": BOTH}, packages=["torch"])
    assert made.earlier(["torch"]).times == {"m": BOTH}
    with pytest.raises(ValueError, match=r"b.json cannot be added to: onnx_version was None and is"):
        made.earlier(["torch", "onnx"])
    assert made.earlier(["torch", "onnx"], may_differ=["onnx_version"]).times == {"m": BOTH}


def test_a_run_says_on_which_machines_its_times_were_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = page(monkeypatch, tmp_path).keep({"m": BOTH}, packages=["torch"], machine={"cpu_model_name": "one and another"})
    assert "one and another" in kept.origin


@pytest.mark.parametrize("path", sorted(benchmark.DATA.glob("*.json")), ids=lambda path: path.stem)
def test_a_stored_run_names_no_machine_and_belongs_to_a_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"hostname|boot_time|/(root|home|tmp|work)/", text)
    assert (benchmark.DATA.parent / f"{path.stem}.py").exists()
    assert benchmark.stored(path.stem).origin.split()[0] in ("Full", "Quick")


def test_nothing_names_the_machine(tmp_path: Path) -> None:
    text = save(tmp_path / "times.json", {"model": BOTH}, environment(["torch"])).read_text(encoding="utf-8") + machine(["torch"])
    for secret in (socket.gethostname(), str(tmp_path), sys.prefix, "boot_time"):
        assert secret not in text


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="system"):
        save(tmp_path / "times.json", {"model": BOTH}, {"system": ""})
    assert [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()] == ["old"]


def test_what_a_fork_has_frozen_stays_frozen() -> None:
    """It may hold sessions of its parent, whose destructors wait for threads that are not there."""
    gc.freeze()
    try:
        with frozen():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    with frozen():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
