"""A few processes that do one task at a time each: a task that takes too long, or takes its process down, costs itself alone."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from exportlab.outcomes import Outcome


@dataclass(frozen=True)
class Lost:
    """A task that came to no result."""

    outcome: Outcome
    detail: str
    seconds: float


def _serve(link: Connection, work: Callable[[Any], Any]) -> None:
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        link.send(work(link.recv()))


class Worker:
    """A process that is replaced when a task takes over `limit` seconds or takes it down."""

    def __init__(self, work: Callable[[Any], Any], limit: float) -> None:
        self.work, self.limit = work, limit
        self.task: Any = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.link, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.work), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task: Any) -> None:
        """Start a task."""
        self.task, self.begin = task, time.monotonic()
        self.link.send(task)

    def wait_for(self, seconds: float) -> tuple[Any, bool]:
        """Return what the task came to, or `Lost`, and True; None and False while it goes on."""
        if self.link.poll(seconds):
            try:
                return self.link.recv(), True
            except (EOFError, ConnectionError):
                return self._replaced(Outcome.CRASH, "the process died"), True
        late = time.monotonic() - self.begin > self.limit
        return (self._replaced(Outcome.TIMEOUT, f"took over {self.limit} s"), True) if late else (None, False)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()

    def _replaced(self, outcome: Outcome, detail: str) -> Lost:
        self.close()
        self._start()
        return Lost(outcome, detail, round(time.monotonic() - self.begin, 2))


def done(wanted: Sequence[Any], work: Callable[[Any], Any], workers: int, limit: float) -> Iterator[tuple[Any, Any]]:
    """Yield each task with what `work` returns of it, or `Lost`, as they come."""
    waiting, crew = list(reversed(wanted)), [Worker(work, limit) for _ in range(workers)]
    idle = list(crew)
    while waiting or len(idle) < len(crew):
        while idle and waiting:
            idle.pop().give(waiting.pop())
        wait([worker.link for worker in crew if worker not in idle], timeout=1)
        for worker in crew:
            if worker not in idle:
                result, ended = worker.wait_for(0)
                if ended:
                    idle.append(worker)
                    yield worker.task, result
    for worker in crew:
        worker.close()
