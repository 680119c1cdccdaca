"""Start worker processes, send them tasks and return records, also when a process dies. The module `worker` runs in these processes."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from ..checks import must_be_names, must_be_positive, must_be_whole
from ..defaults import TASK_BYTES, TASK_SECONDS, TASK_THREADS
from ..exporters.session import CPU, can_fork
from ..isolation import NO_GPU, Ended, Failure, end, exit_code, kill, listen, started_with
from ..outcomes import Outcome
from .records import EAGER, Record
from .task import Task

MARK = "EXPORTLAB_WORKER"  # environment variable of a worker, inherited by all processes that its tasks start
STARTING = 600.0  # seconds until a worker must be ready; imports are slow on a busy machine
WORKER_DIED = "ProcessDied: the worker: "
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

    @property
    def forks(self) -> bool:
        """Whether tasks run in forked processes."""
        return can_fork(self.limits.providers, self.limits.device)

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
        limits = self.setup.limits
        *ran, ended = self._alive().run(task, limits.seconds + limits.grace)
        failure = ended.failure
        if failure is None:
            return self._checked(task, ended.value)
        if failure.kind == "raised" and "Exception" in failure.types:  # SystemExit isn't one
            ours = "internal error in exportlab, which is not a defect of the case: " if failure.internal else ""
            raise (CaseError if ran else EagerError)(f"{task.case}: {ours}{failure.error}")
        begin = "" if ran or failure.error.startswith(WORKER_DIED) else EAGER
        return _lost(task, failure.outcome, f"{begin}{failure.error}")

    def _checked(self, task: Task, fields: Mapping[str, Any]) -> Record:
        try:
            return Record.of({**fields, **task.key._asdict()})
        except ValueError as error:
            self.kill()
            return _lost(task, Outcome.CRASH, f"NoRecord: of what was seen, {error}")

    def _alive(self) -> Process:
        if self._process is None or not self._process.is_alive():
            self._process = start_worker(self.setup)
            weakref.finalize(self, self._process.stop)
        return self._process

    def kill(self) -> None:
        """End the process and its task."""
        if self._process is not None:
            self._process.stop()


def _lost(task: Task, outcome: Outcome, error: str) -> Record:
    return Record(task.case, task.exporter, task.mode, outcome, task.round, error=error)


class Process:
    """The process of a worker, and the pipe to it, which is its standard input."""

    def __init__(self, setup: Setup, said: IO[str]) -> None:
        self._mark = uuid4().hex
        self._pipe, theirs = Pipe()
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "exportlab.sweep.worker"],  # -P: don't import from the current folder
                stdin=theirs.fileno(),
                stdout=said,
                stderr=said,
                env={
                    **os.environ,
                    **dict.fromkeys(THREAD_VARIABLES, str(setup.limits.threads)),
                    "PYTHONPATH": python_path(),
                    MARK: self._mark,
                    **(NO_GPU if setup.forks else {}),
                },
                start_new_session=True,  # Ctrl-C reaches only the sweep, which ends its workers
            )
        self._send(setup)

    def _send(self, message: Any) -> None:
        with suppress(ConnectionError):  # the process just died; reading its answer detects this too
            self._pipe.send(message)

    def start(self) -> Ended:
        """Wait until the process has warmed up, and return how that ended."""
        (ended,) = listen(self._popen, self._pipe, STARTING)
        return ended

    def run(self, task: Task, seconds: float) -> Iterator[Any]:
        """Run a task. Yield an event when its case ran in eager mode, then an `Ended`. Stop the process if it dies or takes too long."""
        self._send(task)
        for said in listen(self._popen, self._pipe, seconds):
            if not isinstance(said, Ended):
                yield said
            elif said.failure is None:
                yield said.value  # the end of the task
            else:
                self.stop()
                yield Ended(failure=replace(said.failure, error=_name_worker(said.failure, seconds)))

    def is_alive(self) -> bool:
        """Return whether the process is still running."""
        return exit_code(self._popen) is None

    def stop(self) -> None:
        """End the process and all processes that its tasks started, including those that outlived it."""
        if self._popen.returncode is None:  # its id can't be another process's yet
            end(self._popen)
        for process in started_with(MARK, self._mark):
            kill(process)
        self._pipe.close()


def _name_worker(failure: Failure, seconds: float) -> str:
    if failure.kind == "timeout":
        return f"TimeLimit: the process that watches over the task did not answer after {seconds:g} s"
    return f"{WORKER_DIED}{failure.error.removeprefix('ProcessDied: ')}"


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
        failure = process.start().failure
        if failure is None:
            return process
        process.stop()
        if failure.kind == "timeout":
            raise RuntimeError(f"a worker cannot start: it was not ready after {STARTING:g} s")
        said.seek(0)
        raise RuntimeError(f"a worker cannot start: {(said.read().strip() or 'it printed no message').splitlines()[-1]}")


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
