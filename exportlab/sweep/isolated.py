"""A worker as its user sees it: a task goes in, a record comes out, whatever happens to the process. Not here: what it does (worker)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import weakref
from dataclasses import asdict, dataclass
from typing import Any

from ..isolation import how_it_ended
from ..outcomes import Outcome
from .records import Record
from .task import Task

GiB = 2**30
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Limits:
    """What one task may take; what takes more is ended, and leaves a record that says so."""

    seconds: float = 60.0
    bytes: int = 8 * GiB
    threads: int = 1


@dataclass(frozen=True)
class Setup:
    """What a worker is told when it starts: the limits, by which exporters it warms up, and whether for models of transformers."""

    limits: Limits
    exporters: tuple[str, ...]
    transformers: bool


class CaseError(Exception):
    """The case itself raised, or is not there: nothing was learned about the exporter."""


class Worker:
    """A process that does one task after the other. When it dies, the task it had is a `crash`, and the next starts a new process."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._process: subprocess.Popen[str] | None = None

    def run(self, task: Task) -> Record:
        """The record of a task.

        Raises:
            CaseError: the case is missing or fails by itself. RuntimeError: no worker can be started here; the message says why.
        """
        process = self._alive()
        answer = self._answer(process, task)
        if "raised" in answer:
            raise CaseError(f"{task.case}: {answer['raised']}")
        return Record.of({**task.key._asdict(), **answer})

    def _answer(self, process: subprocess.Popen[str], task: Task) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asdict(task)) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it died just now: reading says so too
        line = process.stdout.readline()
        if line:
            return json.loads(line)
        return {"outcome": Outcome.CRASH, "error": f"ProcessDied: the worker: {how_it_ended(process.wait())}"}

    def _alive(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = started(self.setup)
            weakref.finalize(self, stop, self._process)
        return self._process

    def kill(self) -> None:
        """Ends it and the task it has."""
        if self._process is not None:
            stop(self._process)


def started(setup: Setup) -> subprocess.Popen[str]:
    """Start a worker; it is warmed up and waits for its first task.

    Raises:
        RuntimeError: it ended before; the message holds its last line.
    """
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "exportlab.sweep.worker", json.dumps(asdict(setup))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(setup.limits.threads))},
            start_new_session=True,  # Ctrl-C is for the sweep; it ends its workers
        )
        assert process.stdout is not None
        if not process.stdout.readline():
            said.seek(0)
            raise RuntimeError(f"a worker cannot start here: {(said.read().strip() or 'it said nothing').splitlines()[-1]}")
    return process


def stop(process: subprocess.Popen[str]) -> None:
    """End a worker; its task ends with it."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


class Crew:
    """The workers of the threads of one sweep in this process, so that they can be ended together."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._of_thread = threading.local()
        self._all: list[Worker] = []

    def run(self, task: Task) -> Record:
        """The record of a task, made by the worker of the calling thread. Raises what `Worker.run` raises."""
        if not hasattr(self._of_thread, "worker"):
            self._of_thread.worker = Worker(self.setup)
            self._all.append(self._of_thread.worker)
        return self._of_thread.worker.run(task)

    def kill(self) -> None:
        """Ends all of them."""
        for worker in self._all:
            worker.kill()
