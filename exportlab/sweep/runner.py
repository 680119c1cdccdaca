"""A sweep: tasks handed to an executor, each record written as it comes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from ..cases import registered
from ..messages import first_line
from ..outcomes import Outcome
from .isolated import CaseError, Crew, Limits, Setup
from .journal import Journal
from .records import Record, environment
from .task import Task

Tell = Callable[[Counter[Outcome], int], None]
_crews = threading.local()  # of the threads of a cluster's workers, which know nothing of the sweep


class SweepError(Exception):
    """Some tasks left no record, since their case fails by itself; the others are done and written."""


def sweep(
    tasks: Sequence[Task],
    path: str | Path,
    *,
    processes: int = 2,
    limits: Limits | None = None,
    executor: Executor | None = None,
    tell: Tell = lambda outcomes, left: None,
) -> list[Record]:
    """Do the tasks that `path` has no record of yet, append a record for each as it comes, and return all that it asked for.

    The same call resumes a sweep that was ended. Each task runs in a process of its own: one that dies, hangs or takes too much
    memory costs its own record, never the sweep.

    Args:
        processes: how many tasks at a time, where there is no `executor`.
        executor: any other `concurrent.futures.Executor`, as `distributed.Client.get_executor()`; its workers need `exportlab`.
        tell: takes the counts by outcome and how many tasks are left, after each record.

    Raises:
        SweepError: a case failed by itself. RecordsError: `path` holds something else, or another environment's records.
        RuntimeError: no worker can be started.
    """
    chosen = limits or Limits()
    journal = Journal(path, environment(chosen.threads))
    try:
        _sweep(tasks, journal, chosen, processes, executor, tell)
    finally:
        journal.close()
    wanted = {task.key for task in tasks}
    return [record for record in journal.records if record.key in wanted]


def _sweep(tasks: Sequence[Task], journal: Journal, limits: Limits, processes: int, executor: Executor | None, tell: Tell) -> None:
    done = {record.key for record in journal.records}
    left = [task for task in tasks if task.key not in done]
    wanted = {task.key for task in tasks}
    outcomes = Counter(record.outcome for record in journal.records if record.key in wanted)
    failed: list[str] = []
    with submitted(left, limits, processes, executor) as futures:
        tell(outcomes, len(left))
        for number, future in enumerate(as_completed(futures), 1):
            try:
                outcomes[journal.write(record_of(future, futures[future])).outcome] += 1
            except CaseError as error:
                failed.append(str(error))
            tell(outcomes, len(left) - number)
    if failed:
        listed = "\n  ".join(dict.fromkeys(failed))
        raise SweepError(f"{len(failed)} of {len(tasks)} tasks have no record, since their case fails by itself:\n  {listed}")


@contextmanager
def submitted(tasks: Sequence[Task], limits: Limits, processes: int, executor: Executor | None) -> Iterator[dict[Future[Record], Task]]:
    """Yield the tasks under way, by the future of each; what is not done when the block ends is given up."""
    setup = Setup(limits, tuple(sorted({task.exporter for task in tasks})), any(map(needs_transformers, tasks)))
    if executor is not None:
        futures = {executor.submit(run_on_cluster, task, setup): task for task in tasks}
        try:
            yield futures
        finally:
            for future in futures:
                future.cancel()
        return
    crew = Crew(setup)
    pool = ThreadPoolExecutor(processes)
    try:
        yield {pool.submit(crew.run, task): task for task in tasks}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        crew.kill()
        pool.shutdown()


def needs_transformers(task: Task) -> bool:
    """Return whether the case of a task says that it is of that library; cases of the user's own file are not looked into."""
    case = None if task.file else registered().get(task.case)
    return case is not None and "transformers" in case.topics


def run_on_cluster(task: Task, setup: Setup) -> Record:
    """Do a task by the worker of this thread, wherever that is: what is sent to an executor of the caller's."""
    crew = getattr(_crews, "crew", None)
    if crew is None or crew.setup != setup:
        crew = _crews.crew = Crew(setup)
    return crew.run(task)


def record_of(future: Future[Record], task: Task) -> Record:
    """Return what a future brought; an executor that lost its own worker brings a `crash`.

    Raises:
        CaseError, RuntimeError: as `Worker.run`. BrokenExecutor: the executor is gone.
    """
    try:
        return future.result()
    except (CaseError, RuntimeError, BrokenExecutor, CancelledError):
        raise
    except Exception as error:  # noqa: BLE001 - an executor has errors of its own (distributed: KilledWorker)
        return Record(task.case, task.exporter, task.mode, Outcome.CRASH, task.round, error=first_line(error))
