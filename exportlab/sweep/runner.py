"""Run a sweep: submit tasks to an executor and write each record when it arrives."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from ..cases import atlas_families, registered
from ..checks import kind_of, must_be, must_be_all, must_be_path, must_be_whole
from ..exporters.session import check_known
from ..messages import first_line
from ..outcomes import Outcome
from .journal import Journal
from .process_worker import CaseError, Crew, Limits, Setup
from .records import PACKAGES, Record, environment, latest
from .scheduler import Scheduler, select_pending_tasks
from .task import Task

Tell = Callable[[Counter[Outcome], int], None]
Submit = Callable[[Task], "Future[Record]"]
LIBRARIES = {"segmentation_models": "segmentation-models-pytorch"}  # families of the atlas whose package has another name
_crews = threading.local()  # one crew per thread of a cluster's worker


class SweepError(Exception):
    """Some tasks have no record because their case fails itself. All other tasks are finished and recorded."""


def sweep(
    tasks: Sequence[Task],
    path: str | Path,
    *,
    processes: int = 2,
    limits: Limits | None = None,
    executor: Executor | None = None,
    tell: Tell = lambda outcomes, left: None,
) -> list[Record]:
    """Run the tasks that have no record in `path` yet, append a record for each, and return the records of all tasks.

    The same call resumes an interrupted sweep. Each task runs in a separate process, so a task that dies, hangs or needs too much memory
    doesn't stop the sweep.

    Args:
        processes: number of parallel tasks when there is no `executor`.
        executor: another `concurrent.futures.Executor`, such as `distributed.Client.get_executor()`. Its workers need `exportlab`.
        tell: called after each record with the counts by outcome and the number of remaining tasks.

    Raises:
        TypeError, ValueError: an argument is invalid. SweepError: a case failed itself. RecordsError: `path` contains something else, or
            records of another environment. RuntimeError: a worker can't be started.
    """
    must_be_all(Task, tasks=tasks)
    must_be_path(path=path)
    must_be_whole(1, processes=processes)
    must_be(Limits, type(None), limits=limits)
    must_be(Executor, type(None), executor=executor)
    if not callable(tell):
        raise TypeError(f"tell must be a function, not {kind_of(tell)}")
    chosen = limits or Limits()
    check_known(chosen.providers)
    journal = Journal(path, environment(chosen.threads, packages_of(tasks), chosen.providers))
    try:
        _sweep(tasks, journal, chosen, processes, executor, tell)
    finally:
        journal.close()
    wanted = {task.key for task in tasks}
    return [record for record in latest(journal.records) if record.key in wanted]


def packages_of(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Return the packages whose versions are recorded: the standard ones, and the libraries of the atlas cases in this sweep."""
    families = {task.case.partition(".")[0] for task in tasks if not task.file}.intersection(atlas_families())
    return tuple(dict.fromkeys([*PACKAGES, *sorted(LIBRARIES.get(family, family) for family in families)]))


def _sweep(tasks: Sequence[Task], journal: Journal, limits: Limits, processes: int, executor: Executor | None, tell: Tell) -> None:
    files = {task.key: task.file or "" for task in tasks}
    left = select_pending_tasks(tasks, journal.records)
    again = {task.key for task in left}
    outcomes = Counter(r.outcome for r in latest(journal.records) if r.key in files and r.key not in again)
    failed: list[str] = []
    tell(outcomes, len(left))
    with closing(ends(Scheduler(left, journal.records), limits, processes, executor)) as found:
        for number, ended in enumerate(found, 1):
            if isinstance(ended, Record):
                outcomes[journal.write(replace(ended, file=files[ended.key])).outcome] += 1
            else:
                failed.append(str(ended))
            tell(outcomes, len(left) - number)
    if failed:
        listed = "\n  ".join(dict.fromkeys(failed))
        raise SweepError(f"{len(failed)} of {len(tasks)} tasks have no record, because their case fails in eager mode:\n  {listed}")


def ends(queue: Scheduler, limits: Limits, processes: int, executor: Executor | None) -> Generator[Record | CaseError, None, None]:
    """Yield the result of each task of a queue when it ends. Raises what `end_of` raises."""
    yield from queue.decided()
    under_way: dict[Future[Record], Task] = {}
    finished: SimpleQueue[Future[Record]] = SimpleQueue()
    with submitter(queue, limits, processes, executor) as (submit, at_once):
        while True:
            while len(under_way) < at_once and (task := queue.next()) is not None:
                future = submit(task)
                under_way[future] = task
                future.add_done_callback(finished.put)
            if not under_way:
                return
            future = finished.get()
            task = under_way.pop(future)
            ended = end_of(future, task)
            yield ended
            yield from queue.done(task, ended)


@contextmanager
def submitter(queue: Scheduler, limits: Limits, processes: int, executor: Executor | None) -> Iterator[tuple[Submit, float]]:
    """Yield a function that submits a task, and how many tasks may run at once. Unfinished tasks are cancelled after the block."""
    setup = Setup(limits, tuple(sorted({task.exporter for task in queue})), any(map(needs_transformers, queue)))
    if executor is not None:
        with given_up() as keep:
            yield lambda task: keep(executor.submit(run_on_cluster, task, setup)), math.inf
        return
    crew = Crew(setup)
    pool = ThreadPoolExecutor(processes)
    try:
        yield lambda task: pool.submit(crew.run, task), processes
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        crew.kill()
        pool.shutdown()


@contextmanager
def given_up() -> Iterator[Callable[[Future[Record]], Future[Record]]]:
    """Yield a function that collects futures, and cancel the unfinished ones at the end."""
    kept: list[Future[Record]] = []

    def keep(future: Future[Record]) -> Future[Record]:
        kept.append(future)
        return future

    try:
        yield keep
    finally:
        for future in kept:
            future.cancel()


def needs_transformers(task: Task) -> bool:
    """Return whether the case of a task uses transformers. Cases of a user's file are not inspected."""
    if task.file:
        return False
    case = registered().get(task.case)
    return task.case.startswith("transformers.") if case is None else "transformers" in case.topics


def run_on_cluster(task: Task, setup: Setup) -> Record:
    """Run a task in this thread's worker. This function is submitted to the caller's executor."""
    crew = getattr(_crews, "crew", None)
    if crew is None or crew.setup != setup:
        crew = _crews.crew = Crew(setup)
    return crew.run(task)


def end_of(future: Future[Record], task: Task) -> Record | CaseError:
    """Return the record of a future, or the error of its case. If the executor lost its worker, the record is a `crash`.

    Raises:
        RuntimeError: as `Worker.run`. BrokenExecutor: the executor can't be used any more.
    """
    try:
        return future.result()
    except CaseError as error:
        return error
    except (RuntimeError, BrokenExecutor, CancelledError):
        raise
    except Exception as error:  # noqa: BLE001 - executors raise other errors too (distributed: KilledWorker)
        return Record(task.case, task.exporter, task.mode, Outcome.CRASH, task.round, error=first_line(error))
