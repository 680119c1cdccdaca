"""Schedule tasks in the given order, but run each case that fails in eager mode only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .process_worker import EagerError
from .records import Record, latest
from .task import Task


def select_pending_tasks(tasks: Sequence[Task], records: Iterable[Record]) -> list[Task]:
    """Return the tasks without a record, and those whose only record is of a process killed from outside. These are repeated once."""
    known = list(records)
    times = Counter(record.key for record in known)
    again = {record.key for record in latest(known) if record.killed and times[record.key] == 1}
    return [task for task in tasks if task.key not in times or task.key in again]


class Scheduler:
    """A queue of tasks.

    The first task of a case runs alone, because it runs the case in eager mode before the export. If the case hangs, dies or raises
    there, its other tasks get the same result without running. A later round waits until the tasks of the previous round are finished.
    """

    def __init__(self, tasks: Iterable[Task], records: Iterable[Record] = ()) -> None:
        self._waiting = list(tasks)
        self._tried: dict[str, Record | EagerError | None] = {}  # None: the case runs in eager mode
        self._trying: set[str] = set()
        for record in records:
            self._learn(record.case, record)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._waiting)

    def next(self) -> Task | None:
        """Return the next task that can run now, or None."""
        for place, task in enumerate(self._waiting):
            if task.round > self._waiting[0].round:
                return None
            if task.case in self._tried or task.case not in self._trying:
                self._trying.add(task.case)
                return self._waiting.pop(place)
        return None

    def done(self, task: Task, ended: Record | Exception) -> list[Record | EagerError]:
        """Register the result of a task, and return the results of tasks that don't need to run: a record each, or the same error."""
        self._trying.discard(task.case)
        self._learn(task.case, ended)
        return self.decided()

    def decided(self) -> list[Record | EagerError]:
        """Return the results of tasks that don't need to run, and remove these tasks from the queue."""
        found = [apply_verdict(task, verdict) for task in self._waiting if (verdict := self._tried.get(task.case)) is not None]
        self._waiting = [task for task in self._waiting if self._tried.get(task.case) is None]
        return found

    def _learn(self, case: str, ended: Record | Exception) -> None:
        if isinstance(ended, EagerError) or (isinstance(ended, Record) and ended.of_eager):
            self._tried.setdefault(case, ended)
        elif not isinstance(ended, Record) or not ended.killed:
            self._tried.setdefault(case, None)


def apply_verdict(task: Task, verdict: Record | EagerError) -> Record | EagerError:
    """Return the eager result of another task of the same case as the result of this task."""
    if isinstance(verdict, EagerError):
        return verdict
    return Record(task.case, task.exporter, task.mode, verdict.outcome, task.round, error=verdict.error)
