"""Run the rounds of a benchmark: the ways in turn, each in a separate process. Each record is written immediately."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..cases import Case
from ..defaults import BENCH_SECONDS, TASK_BYTES
from ..files import atomic_write
from ..isolation import run_isolated
from ..measure.words import spoken
from ..outcomes import Outcome
from ..sweep import Limits, Task, sweep
from ..sweep.records import Record, latest, read
from ..sweep.scheduler import select_pending_tasks
from ..target import BadInput
from .observe import observe_case
from .plan import Plan

RECORDS, PLAN = "records.jsonl", "plan.json"
BY = "exportlab.bench.observe:observe"
DONE_FOR = (Outcome.TIMEOUT, Outcome.CRASH, Outcome.CAPTURE, Outcome.CONVERT, Outcome.LOAD)  # a second round would have the same result
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Work:
    """The job of a benchmark: the model, the requested ways, the number of rounds, and the limits of one round."""

    case: str
    ways: tuple[str, ...]
    rounds: int = 5
    plan: Plan = field(default_factory=Plan)
    file: str | None = None
    seconds: float = BENCH_SECONDS
    memory: int = TASK_BYTES
    fingerprint: str = ""

    def tasks(self, rounds: Sequence[int], ways: Sequence[str]) -> list[Task]:
        """Return a task for each way and round. Each round starts with a different way."""
        mode, text = "dynamic", self.plan.text()
        order = {turn: (*ways[turn % len(ways) :], *ways[: turn % len(ways)]) for turn in rounds}
        return [Task(self.case, way, mode, turn, self.file, BY, text) for turn in rounds for way in order[turn]]

    def settings(self) -> dict[str, Any]:
        """Return the settings that all records of a folder share."""
        return {"case": self.case, "model": self.fingerprint, **asdict(self.plan)}


def measure(work: Work, folder: Path, tell: Tell, executor: Executor | None = None) -> list[Record]:
    """Run the first round, then the other rounds for the ways that succeeded. Return all records.

    Raises:
        BadInput: the folder contains a benchmark with other settings. Also raises what `sweep` raises.
    """
    begin(work, folder)
    plan = work.plan
    limits = Limits(seconds=work.seconds, bytes=work.memory, threads=plan.threads, providers=plan.providers, device=plan.device)
    path = folder / RECORDS

    def done(tasks: list[Task]) -> list[Record]:
        left = select_pending_tasks(tasks, read(path) if path.exists() and path.stat().st_size else [])
        return sweep(tasks, path, processes=1, limits=limits, executor=executor, tell=telling(left, work, tell))

    first = done(work.tasks([1], work.ways))
    alive = [record.exporter for record in first if record.outcome not in DONE_FOR]
    further = [name for name in work.ways if name in alive]
    if work.rounds > 1 and further:
        return latest([*first, *done(work.tasks(range(2, work.rounds + 1), further))])
    return first


def telling(tasks: Sequence[Task], work: Work, tell: Tell) -> Callable[[Counter[Outcome], int], None]:
    """Return the progress callback for a sweep. It reports the current task, and time limits for this task and all remaining ones."""

    def report(_: Counter[Outcome], left: int) -> None:
        if left:
            task = tasks[len(tasks) - left]
            rest = f"; with the {left - 1} after it, {duration((left) * work.seconds)}" * (left > 1)
            tell(f"round {task.round} of {work.rounds}: {spoken(task.exporter)}, at most {duration(work.seconds)}{rest}")

    return report


def duration(seconds: float) -> str:
    """Format a duration, such as `45 s` or `12 min`."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def begin(work: Work, folder: Path) -> None:
    """Create the folder, or check that its results have the same settings.

    Raises:
        BadInput: the settings differ, or the folder cannot be written.
    """
    path, settings = folder / PLAN, json.loads(json.dumps(work.settings()))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _check_same(json.loads(path.read_text(encoding="utf-8")), settings, folder)
            return
        with atomic_write(path) as draft:
            draft.write_text(json.dumps(settings, indent=1), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot use the folder {folder}: {error}") from error


def _check_same(old: Any, new: dict[str, Any], folder: Path) -> None:
    differ = [name for name in new if not isinstance(old, dict) or old.get(name) != new[name]]
    if differ == ["model"]:
        raise BadInput(f"the model's file has changed since {folder} was created: use another folder with --output")
    if differ:
        raise BadInput(f"{folder} was created with other settings ({', '.join(differ)}): use another folder with --output")


def alone(case: Case, task: Task) -> Record:
    """Run a task in a fork. Set the number of threads first, because PyTorch's threads don't survive a fork."""
    torch.set_num_threads(Plan.of(task.asked).threads)
    return observe_case(case, task)


class InForks(Executor):
    """An executor for a model object, as in a notebook. It runs tasks one after the other, each in a fork of this process."""

    def __init__(self, case: Case, limits: tuple[float, int]) -> None:
        self._case, (self._seconds, self._memory) = case, limits
        self._pool = ThreadPoolExecutor(1)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the task, which is the first argument. `fn`, which would load the model from a file, is ignored."""
        return self._pool.submit(self._record, args[0])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel tasks that have not started."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def _record(self, task: Task) -> Record:
        ended = run_isolated(lambda: alone(self._case, task), seconds=self._seconds, memory=self._memory)
        if ended.failure is None:
            return ended.value
        if ended.failure.kind == "raised":
            raise RuntimeError(f"{task.case}: {ended.failure.error}")
        return Record(task.case, task.exporter, task.mode, ended.failure.outcome, task.round, error=ended.failure.error)
