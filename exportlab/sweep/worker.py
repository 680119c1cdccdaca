"""Run tasks in a worker process: `python -P -m exportlab.sweep.worker`. Standard input is the pipe to the sweep.

The worker imports and warms up once, then forks a child for each task, so that side effects end with the child. A GPU can't be used in a
fork, so GPU tasks run in a new process that warms up itself. A fresh interpreter starts the worker, because the process of the sweep may
have threads, which a fork doesn't copy, or may be a daemon, which can't have children of `multiprocessing`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pkgutil import resolve_name
from typing import Any

import torch

from ..exporters.session import running_on
from ..isolation import STDIN, Ended, adopt_orphans, descendants, die_with_parent, end_descendants, events
from ..messages import quiet
from .process_worker import Setup
from .task import Task
from .warm_up import warmed_up


def main() -> None:
    """Serve until the sweep closes the pipe. The output of tasks is discarded."""
    die_with_parent()
    adopt_orphans()
    pipe = Connection(STDIN)  # a child gets another standard input, so the task's output can't become an answer
    setup = pipe.recv()
    if setup.forks:
        warm_up(setup.exporters, setup.transformers)
    else:
        resource_tracker.ensure_running()  # shared by all children, so that it isn't ended with a task
    pipe.send(Ended())
    with suppress(EOFError):
        while True:
            for said in run_apart(pipe.recv(), setup):
                pipe.send(said)


def warm_up(exporters: Sequence[str], transformers: bool) -> None:
    """Run the imports and first exports that would otherwise slow down the first task."""
    quiet()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    warmed_up(exporters, transformers)


def run_apart(task: Task, setup: Setup) -> Iterator[Any]:
    """Run a task in a child with limits. Yield the child's events, then an `Ended` whose value is the child's `Ended`."""
    kept, limits = descendants(), setup.limits
    call = partial(answer_task, task, setup)
    try:
        for said in events(call, seconds=limits.seconds, memory=limits.bytes, until=STDIN, anew=not setup.forks):
            if not isinstance(said, Ended):
                yield said
    finally:
        end_descendants(kept)
    yield Ended(said)


def answer_task(task: Task, setup: Setup, tell: Callable[[bool], None]) -> dict[str, Any]:
    """Run a task, tell when its case ran in eager mode, and return its record as a dictionary. A new process warms up first."""
    if not setup.forks:
        warm_up([task.exporter], setup.transformers)
    with running_on(setup.limits.providers):
        return asdict(resolve_name(task.by)(task, lambda: tell(True)))


if __name__ == "__main__":
    main()
