"""Hostile arguments of what is asked of many: sweeps, their records, and times."""

from __future__ import annotations

import itertools
from concurrent.futures import Executor, Future
from typing import Any

from hostile import KINDS_OF_PATH, in_folder, made, mostly, of_kind, path_in, values
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from promise import promised

from exportlab.cases import Case, registered
from exportlab.measure.timing import interleaved
from exportlab.outcomes import Outcome
from exportlab.sweep import Limits, Task, grid, sweep
from exportlab.sweep.changes import changes
from exportlab.sweep.records import Record, read

CASES = [*itertools.islice(registered().values(), 2), Case("mine", lambda: (made("linear"), ()))]
RECORDS = [Record("mlp", "to_onnx", "static", Outcome.OK, seconds={"export": 0.5}), Record("cnn", "to_onnx", "static", Outcome.WRONG)]
ENOUGH = 3  # rounds
kinds = st.sampled_from(KINDS_OF_PATH)
tasks = st.lists(st.sampled_from([Task("mlp", "to_onnx", "static"), Task("cnn", "dynamo", "dynamic"), Task("a\nb", "", "x")]), max_size=3)


class AtOnce(Executor):
    """Has a record of every task."""

    def submit(self, function: Any, task: Any, *further: Any, **named: Any) -> Future[Any]:
        """Return a future that is done."""
        future: Future[Any] = Future()
        future.set_result(Record(task.case, task.exporter, task.mode, Outcome.OK, task.round))
        return future


def endless(rounds: Any) -> bool:
    """Whether it is as much as was asked for, and more than a test has time for."""
    return isinstance(rounds, int) and rounds > ENOUGH


@given(
    mostly(
        cases=st.lists(st.sampled_from(CASES)),
        exporters=st.lists(st.just("to_onnx")),
        modes=st.lists(st.sampled_from(["static", "dynamic"])),
        rounds=st.integers(-1, 3),
        file=st.none(),
    )
)
def test_grid(given: dict[str, Any]) -> None:
    assume(not endless(given["rounds"]))
    promised(lambda: grid(**given))


@given(kinds | values, mostly(tasks=tasks, processes=st.integers(-1, 4), limits=st.none(), executor=st.just(AtOnce()), tell=st.just(print)))
def test_sweep(place: Any, given: dict[str, Any]) -> None:
    if given["executor"] is None:  # else it would be processes
        given["executor"] = AtOnce()
    with in_folder() as folder:
        path = path_in(folder, place) if of_kind(place) else place
        promised(lambda: sweep(given.pop("tasks"), path, **given), writes=folder)


@given(mostly(seconds=st.floats(), bytes=st.integers(), threads=st.integers()))
def test_limits(given: dict[str, Any]) -> None:
    with in_folder() as folder:
        promised(lambda: sweep([], folder / "new.jsonl", limits=Limits(**given)))


@given(kinds | values)
def test_read(place: Any) -> None:
    with in_folder() as folder:
        path = path_in(folder, place) if of_kind(place) else place
        promised(lambda: read(path), writes=folder)


@given(mostly(before=st.lists(st.sampled_from(RECORDS)), after=st.lists(st.sampled_from(RECORDS))))
def test_changes(given: dict[str, Any]) -> None:
    promised(lambda: str(changes(**given)))


def make() -> Any:
    """Nothing to prepare."""
    return lambda: None


makers = st.dictionaries(st.integers(), st.dictionaries(st.sampled_from("ab"), st.just(make) | values, max_size=2), max_size=2)


@settings(max_examples=settings.default.max_examples // 4)  # every call collects the garbage before it
@given(mostly(groups=makers, rounds=st.integers(-1, 2), discard=st.integers(-1, 1), budget=st.floats(), least=st.integers(-1, 2)))
def test_interleaved(given: dict[str, Any]) -> None:
    assume(not any(endless(given[name]) for name in ("rounds", "discard", "least")))
    promised(lambda: interleaved(**given))
