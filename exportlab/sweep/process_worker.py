"""A worker as its user sees it: a task goes in, a record comes out, whatever happens to the process. Not here: what it does (worker)."""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from ..checks import must_be_names, must_be_positive, must_be_whole
from ..defaults import TASK_BYTES, TASK_SECONDS, TASK_THREADS
from ..exporters.session import CPU, can_fork
from ..isolation import DYING, NO_GPU, OFTEN, descendants, how_it_ended, started_with
from ..outcomes import Outcome
from .fields import row_of
from .records import EAGER, Record
from .task import Task
from .worker import RAN

MARK = "EXPORTLAB_WORKER"  # in the environment of a worker, and so of all that its tasks start
STARTING = 600.0  # seconds in which a worker is ready: it imports everything, on a machine that may be busy
MOST = 2**16  # bytes that are read at a time
APART = ("transformers",)  # after an export by it, torch knows the caches of that library, and other exporters take what they refused
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Limits:
    """What one task may take, and run on; what takes more is ended, and leaves a record that says so. What is no limit is refused.

    Attributes:
        grace: seconds after these, in which the process that watches over the task must have ended it: a task may have stopped that too.
        providers: of ONNX Runtime, that run it. device: where the model itself is run.
    """

    seconds: float = TASK_SECONDS
    bytes: int = TASK_BYTES
    threads: int = TASK_THREADS
    grace: float = 30.0
    providers: tuple[str, ...] = (CPU,)
    device: str = "cpu"

    def __post_init__(self) -> None:
        must_be_positive(seconds=self.seconds, grace=self.grace)
        must_be_whole(1, bytes=self.bytes, threads=self.threads)
        must_be_names(providers=self.providers)


@dataclass(frozen=True)
class Setup:
    """What a worker is told when it starts: the limits, by which exporters it warms up, and whether for models of transformers."""

    limits: Limits
    exporters: tuple[str, ...]
    transformers: bool

    def of(self, exporter: str) -> Setup:
        """Return the setup of the workers that do its tasks: one that changes what others do has workers of its own."""
        return replace(self, exporters=tuple(e for e in self.exporters if (e in APART) == (exporter in APART)))


class CaseError(Exception):
    """The case itself raised, or is not there: nothing was learned about the exporter."""


class EagerError(CaseError):
    """It did so before any exporter was asked, so all other runs of the case would end likewise."""


class Worker:
    """A process that does one task after the other. When it dies, the task it had is a `crash`, and the next starts a new process."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._process: Process | None = None

    def run(self, task: Task) -> Record:
        """The record of a task.

        Raises:
            CaseError: the case is missing or fails by itself. RuntimeError: no worker can be started here; the message says why.
        """
        ran, answer = self._answer(self._alive(), task)
        if "raised" in answer:
            raise (CaseError if ran else EagerError)(f"{task.case}: {answer['raised']}")
        try:
            return Record.of({**task.key._asdict(), **answer})
        except ValueError as error:
            self.kill()
            return Record(task.case, task.exporter, task.mode, Outcome.CRASH, task.round, error=f"NoRecord: of what was seen, {error}")

    def _answer(self, process: Process, task: Task) -> tuple[bool, dict[str, Any]]:
        """Whether the case ran in eager, and the fields that were seen, or the error of the case."""
        ran, limits = False, self.setup.limits
        deadline = time.monotonic() + limits.seconds + limits.grace
        process.tell(asdict(task))
        try:
            while (answer := process.answer(deadline)) == RAN:
                ran = True
        except TimeoutError:
            process.stop()
            said = f"TimeLimit: the process that watches over the task did not answer after {limits.seconds + limits.grace:g} s"
            answer = {"outcome": Outcome.TIMEOUT, "error": said}
        if answer is None:
            said = f"ProcessDied: the worker: {process.how_it_ended()}"
            process.stop()
            return ran, {"outcome": Outcome.CRASH, "error": said}
        if not ran and "error" in answer:
            answer["error"] = f"{EAGER}{answer['error']}"
        return ran, answer

    def _alive(self) -> Process:
        if self._process is None or not self._process.is_alive():
            self._process = start_worker(self.setup)
            weakref.finalize(self, self._process.stop)
        return self._process

    def kill(self) -> None:
        """Ends it and the task it has."""
        if self._process is not None:
            self._process.stop()


class Process:
    """The process of a worker, and the lines that go back and forth."""

    def __init__(self, setup: Setup, said: IO[str]) -> None:
        self._unread, self._mark = b"", uuid4().hex
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "exportlab.sweep.worker", json.dumps(asdict(setup))],  # -P: nothing of the current folder is run
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            bufsize=0,
            env={
                **os.environ,
                **dict.fromkeys(THREAD_VARIABLES, str(setup.limits.threads)),
                "PYTHONPATH": python_path(),
                MARK: self._mark,
                **(NO_GPU if can_fork(setup.limits.providers, setup.limits.device) else {}),
            },
            start_new_session=True,  # Ctrl-C is for the sweep; it ends its workers
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._stdin, self._stdout = self._popen.stdin, self._popen.stdout

    def tell(self, row: Mapping[str, Any]) -> None:
        """Write a line to it."""
        with suppress(BrokenPipeError):  # it died just now: the answer says so too
            self._stdin.write(json.dumps(row).encode() + b"\n")

    def answer(self, deadline: float) -> dict[str, Any] | None:
        """Return its next line; None once it has ended, whoever else still holds its pipe.

        Raises:
            TimeoutError: there was none until the deadline.
        """
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if wait([self._stdout.fileno()], min(OFTEN, left)):
                more = os.read(self._stdout.fileno(), MOST)
                if not more:
                    return None
                self._unread += more
            elif not self.is_alive():
                return None
        line, _, self._unread = self._unread.partition(b"\n")
        return row_of(line)

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def how_it_ended(self) -> str:
        """Say how it ended, in words, once it has closed its pipe."""
        try:
            return how_it_ended(self._popen.wait(DYING))
        except subprocess.TimeoutExpired:
            return "it closed its pipe, went on, and was ended"

    def stop(self) -> None:
        """End it, and all that its tasks have started, also where that has outlived it."""
        others = descendants(self._popen.pid) if self.is_alive() else set()
        self._popen.kill()
        for process in others | started_with(MARK, self._mark):
            with suppress(ProcessLookupError):  # it ended by itself
                os.kill(process, signal.SIGKILL)
        self._popen.wait()
        for pipe in (self._stdin, self._stdout):
            pipe.close()


def python_path() -> str:
    """Return the PYTHONPATH of a worker: it imports this very package, wherever this process found it."""
    here = str(Path(__file__).parents[2])
    installed = here in (*site.getsitepackages(), site.getusersitepackages())
    return os.pathsep.join([*([] if installed else [here]), *filter(None, [os.environ.get("PYTHONPATH")])])


def start_worker(setup: Setup) -> Process:
    """Start a worker; it is warmed up and waits for its first task.

    Raises:
        RuntimeError: it ended before, and the message holds its last line; or it does not come to its end.
    """
    with tempfile.TemporaryFile("w+") as said:
        process = Process(setup, said)
        try:
            ready = process.answer(time.monotonic() + STARTING)
        except TimeoutError as error:
            process.stop()
            raise RuntimeError(f"a worker cannot start here: it was not ready after {STARTING:g} s") from error
        if ready is None:
            said.seek(0)
            raise RuntimeError(f"a worker cannot start here: {(said.read().strip() or 'it said nothing').splitlines()[-1]}")
    return process


class Crew:
    """The workers of the threads of one sweep in this process, so that they can be ended together."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._of_thread = threading.local()
        self._all: list[Worker] = []

    def run(self, task: Task) -> Record:
        """The record of a task, made by a worker of the calling thread. Raises what `Worker.run` raises."""
        workers = vars(self._of_thread).setdefault("workers", {})
        setup = self.setup.of(task.exporter)
        if setup not in workers:
            workers[setup] = Worker(setup)
            self._all.append(workers[setup])
        return workers[setup].run(task)

    def kill(self) -> None:
        """Ends all of them."""
        for worker in self._all:
            worker.kill()
