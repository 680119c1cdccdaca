"""Start worker processes, send them tasks and return records, also when a process dies. The module `worker` runs in these processes."""

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

MARK = "EXPORTLAB_WORKER"  # environment variable of a worker, inherited by all processes that its tasks start
STARTING = 600.0  # seconds until a worker must be ready; imports are slow on a busy machine
MOST = 2**16  # bytes per read
APART = ("transformers",)  # this exporter registers cache classes in torch, which helps the exporters after it
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Limits:
    """The limits of one task, and the device it runs on. A task that exceeds a limit is ended and recorded as such.

    Attributes:
        grace: extra seconds for the supervising process to end a task that is too slow. After that, both are ended.
        providers: the providers of ONNX Runtime that run the exported model. device: the device of the PyTorch model.
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
    """The start arguments of a worker: the limits, the exporters to warm up, and whether to warm up a model of transformers."""

    limits: Limits
    exporters: tuple[str, ...]
    transformers: bool

    def of(self, exporter: str) -> Setup:
        """Return the setup of the workers for this exporter. Exporters that affect others run in separate workers."""
        return replace(self, exporters=tuple(e for e in self.exporters if (e in APART) == (exporter in APART)))


class CaseError(Exception):
    """The case is missing or raised an error itself, so the exporter wasn't tested."""


class EagerError(CaseError):
    """The case failed before the export, so all other runs of the case would fail too."""


class Worker:
    """A process that runs one task after the other. If it dies, its task is a `crash`, and the next task starts a new process."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._process: Process | None = None

    def run(self, task: Task) -> Record:
        """Run a task and return its record.

        Raises:
            CaseError: the case is missing or fails itself. RuntimeError: a worker can't be started; the message contains the reason.
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
        """Return whether the case ran in eager mode, and the fields of its record or the error of the case."""
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
        """End the process and its task."""
        if self._process is not None:
            self._process.stop()


class Process:
    """The process of a worker, and the lines exchanged with it."""

    def __init__(self, setup: Setup, said: IO[str]) -> None:
        self._unread, self._mark = b"", uuid4().hex
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "exportlab.sweep.worker", json.dumps(asdict(setup))],  # -P: don't import from the current folder
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
            start_new_session=True,  # Ctrl-C reaches only the sweep, which ends its workers
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._stdin, self._stdout = self._popen.stdin, self._popen.stdout

    def tell(self, row: Mapping[str, Any]) -> None:
        """Send a line to the process."""
        with suppress(BrokenPipeError):  # the process just died; reading its answer detects this too
            self._stdin.write(json.dumps(row).encode() + b"\n")

    def answer(self, deadline: float) -> dict[str, Any] | None:
        """Return its next line, or None after it ended, even if another process still has the pipe open.

        Raises:
            TimeoutError: the process didn't answer before the deadline.
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
        """Return whether the process is still running."""
        return self._popen.poll() is None

    def how_it_ended(self) -> str:
        """Describe how the process ended after it closed its pipe."""
        try:
            return how_it_ended(self._popen.wait(DYING))
        except subprocess.TimeoutExpired:
            return "it closed its pipe but kept running, and was killed"

    def stop(self) -> None:
        """End the process and all processes that its tasks started, including those that outlived it."""
        others = descendants(self._popen.pid) if self.is_alive() else set()
        self._popen.kill()
        for process in others | started_with(MARK, self._mark):
            with suppress(ProcessLookupError):  # it has already ended
                os.kill(process, signal.SIGKILL)
        self._popen.wait()
        for pipe in (self._stdin, self._stdout):
            pipe.close()


def python_path() -> str:
    """Return the PYTHONPATH with which a worker imports the same package as this process."""
    here = str(Path(__file__).parents[2])
    installed = here in (*site.getsitepackages(), site.getusersitepackages())
    return os.pathsep.join([*([] if installed else [here]), *filter(None, [os.environ.get("PYTHONPATH")])])


def start_worker(setup: Setup) -> Process:
    """Start a worker and wait until it is warmed up and ready for its first task.

    Raises:
        RuntimeError: the process ended early, and the message contains its last line; or it wasn't ready in time.
    """
    with tempfile.TemporaryFile("w+") as said:
        process = Process(setup, said)
        try:
            ready = process.answer(time.monotonic() + STARTING)
        except TimeoutError as error:
            process.stop()
            raise RuntimeError(f"a worker cannot start: it was not ready after {STARTING:g} s") from error
        if ready is None:
            said.seek(0)
            raise RuntimeError(f"a worker cannot start: {(said.read().strip() or 'it printed no message').splitlines()[-1]}")
    return process


class Crew:
    """The workers of one sweep, one per thread, so that they can be ended together."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._of_thread = threading.local()
        self._all: list[Worker] = []

    def run(self, task: Task) -> Record:
        """Run a task in a worker of the calling thread and return its record. Raises what `Worker.run` raises."""
        workers = vars(self._of_thread).setdefault("workers", {})
        setup = self.setup.of(task.exporter)
        if setup not in workers:
            workers[setup] = Worker(setup)
            self._all.append(workers[setup])
        return workers[setup].run(task)

    def kill(self) -> None:
        """End all workers."""
        for worker in self._all:
            worker.kill()
