"""The order of tasks: as they were given, but nothing is asked of a case twice that eager cannot answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .process_worker import EagerError
from .records import Record, latest
from .task import Task


def select_pending_tasks(tasks: Sequence[Task], records: Iterable[Record]) -> list[Task]:
    """Return the tasks that have no record yet, or one alone, of which the process was killed from outside: they are tried once more."""
    known = list(records)
    times = Counter(record.key for record in known)
    again = {record.key for record in latest(known) if record.killed and times[record.key] == 1}
    return [task for task in tasks if task.key not in times or task.key in again]


class Scheduler:
    """Tasks that wait for their turn.

    Of a case that nothing is known of yet, one task is handed out alone: it runs the case in eager before it asks its exporter. Where
    that hangs, dies or raises, the other tasks of the case end likewise, and are not run. A later round waits for the tasks before it.
    """

    def __init__(self, tasks: Iterable[Task], records: Iterable[Record] = ()) -> None:
        self._waiting = list(tasks)
        self._tried: dict[str, Record | EagerError | None] = {}  # None: it runs in eager
        self._trying: set[str] = set()
        for record in records:
            self._learn(record.case, record)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._waiting)

    def next(self) -> Task | None:
        """Return the next task that can be run; None while there is none."""
        for place, task in enumerate(self._waiting):
            if task.round > self._waiting[0].round:
                return None
            if task.case in self._tried or task.case not in self._trying:
                self._trying.add(task.case)
                return self._waiting.pop(place)
        return None

    def done(self, task: Task, ended: Record | Exception) -> list[Record | EagerError]:
        """Note how a task ended, and return how those end that need not be run: each with a record of its own, or with the same error."""
        self._trying.discard(task.case)
        self._learn(task.case, ended)
        return self.decided()

    def decided(self) -> list[Record | EagerError]:
        """Return how those tasks end that need not be run, and forget them."""
        found = [apply_verdict(task, verdict) for task in self._waiting if (verdict := self._tried.get(task.case)) is not None]
        self._waiting = [task for task in self._waiting if self._tried.get(task.case) is None]
        return found

    def _learn(self, case: str, ended: Record | Exception) -> None:
        if isinstance(ended, EagerError) or (isinstance(ended, Record) and ended.of_eager):
            self._tried.setdefault(case, ended)
        elif not isinstance(ended, Record) or not ended.killed:
            self._tried.setdefault(case, None)


def apply_verdict(task: Task, verdict: Record | EagerError) -> Record | EagerError:
    """Return what eager did to another task of its case, as the end of this one."""
    if isinstance(verdict, EagerError):
        return verdict
    return Record(task.case, task.exporter, task.mode, verdict.outcome, task.round, error=verdict.error)
