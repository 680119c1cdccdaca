"""Run a call in a child process, forked or spawned, with limits on time and memory.

On platforms that cannot fork, calls that cannot be spawned run in this process without limits.
"""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from fx2onnx.garbage import freeze_until_exit
from fx2onnx.internal_errors import is_internal

from .diagnostics import ANSI
from .messages import chain, first_line
from .outcomes import Outcome

STDIN, STDOUT, STDERR = 0, 1, 2
OFTEN = 0.1  # seconds between two checks of a child's memory
DYING, SOON = 5.0, 0.01  # seconds to wait for the exit of a child that has closed its pipe, and between two checks
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # man 2 prctl
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # for forks: after `torch.cuda.is_available()` in the parent, CUDA fails to start in a fork
CAN_FORK = hasattr(os, "fork") and sys.platform != "darwin"  # macOS: a fork is unsafe once torch or a system library has threads
NOT_ISOLATED = "exportlab: this platform cannot fork processes, so calls run in this process, without limits on time and memory"
PACKAGE = f"{Path(__file__).parent.as_posix()}/"
DEEP = 60  # maximum number of traceback frames; the innermost ones are kept


@dataclass(frozen=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Failure:
    """The reason why a call returned no value.

    Attributes:
        kind: `raised`, `timeout` or `crash`.
        error: the type and first line of the exception, or the reason why the child was ended.
        message: the whole message, root cause first.
        types: the types of the error and its causes, including base classes.
        frames: the tracebacks of the error and its causes, root cause last, innermost frame last.
        notes: the notes that were added to the exceptions.
        internal: whether it is a defect of `exportlab` or `to_onnx`, and not of the model.
    """

    kind: Literal["raised", "timeout", "crash"]
    error: str
    message: str = ""
    types: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    notes: tuple[str, ...] = ()
    internal: bool = False

    @property
    def outcome(self) -> Outcome:
        """The outcome for an export in this call. Exporters' own errors are reported separately, so any other error is a `crash`."""
        return Outcome.TIMEOUT if self.kind == "timeout" else Outcome.CRASH


@dataclass(frozen=True)
class Ended:
    """The end of a call: a value or a failure."""

    value: Any = None
    failure: Failure | None = None


class Abandoned(Exception):
    """The process that waited for the call is gone, so the call was ended."""


Child = BaseProcess | subprocess.Popen[bytes]


def run_isolated(call: Callable[[], Any], *, seconds: float, memory: int, anew: bool = False) -> Ended:
    """Run `call` in a child process and return its value or failure. See `events` for the arguments."""
    (ended,) = events(partial(_call_without_events, call), seconds=seconds, memory=memory, anew=anew)
    return ended


def _call_without_events(call: Callable[[], Any], tell: Callable[[Any], None]) -> Any:
    return call()


def events(
    call: Callable[[Callable[[Any], None]], Any],
    *,
    seconds: float,
    memory: int,
    until: int | None = None,
    whole: bool = True,
    anew: bool = False,
) -> Iterator[Any]:
    """Run `call` in a child process. Yield each event that it sends with the function it receives, then an `Ended`.

    A forked child shares this process's memory without a copy. Events and the result are pickled; printed output is discarded. All
    processes that the call started end with it.

    On Windows and macOS, where `CAN_FORK` is false, only `anew` starts a child. Otherwise the call runs in this process without limits,
    its events are yielded when it ends, and a line about this is printed once.

    Args:
        memory: limit in bytes for the child and the processes it starts.
        until: a file descriptor; the child is ended when it becomes readable or is closed.
        whole: whether `memory` includes the processes that the child starts. Use False if the child limits them itself.
        anew: spawn a new interpreter instead of a fork. It imports all modules again, and `call` is pickled. CUDA needs this, because
            it doesn't work in a fork of a process that has used it.

    Raises:
        Abandoned: `until` became readable.
    """
    if not (anew or CAN_FORK):
        yield from _run_here(call)
        return
    context = multiprocessing.get_context("spawn" if anew else "fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_run_in_child, args=(call, theirs, anew))  # type: ignore[attr-defined]
    child.start()
    theirs.close()
    try:
        yield from listen(child, ours, seconds, memory=memory, whole=whole, until=until)
    finally:
        end(child)
        ours.close()


def _run_here(call: Callable[[Callable[[Any], None]], Any]) -> list[Any]:
    """Run a call in this process. Return its events, then its `Ended`. A `KeyboardInterrupt` is passed through."""
    _print_not_isolated()
    sent: list[Any] = []
    try:
        ended = Ended(call(sent.append))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is returned as text, as from a child process
        ended = Ended(failure=failure_of(error))
    return [*sent, ended]


@cache
def _print_not_isolated() -> None:
    print(NOT_ISOLATED, file=sys.stderr)


def listen(
    child: Child, answers: Connection, seconds: float, *, memory: int | None = None, whole: bool = True, until: int | None = None
) -> Iterator[Any]:
    """Yield what a child sends up to its `Ended`, or an `Ended` with the reason if it dies or exceeds a limit. See `events`."""
    sources: list[Connection | int] = [answers] if until is None or os.name == "nt" else [answers, until]  # Windows only waits for handles
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        ready = wait(sources, min(OFTEN, left))
        if answers in ready:
            said = _receive(child, answers)
            yield said
            if isinstance(said, Ended):
                return
        elif ready:
            raise Abandoned
        elif exit_code(child) is not None and not answers.poll():  # the child's own children may still have the pipe open
            yield _report_death(child)
            return
        if memory is not None and memory_of(child, whole) > memory:
            yield Ended(failure=Failure("crash", f"MemoryLimit: the process took more than {memory / 2**30:g} GiB and was ended"))
            return
    yield Ended(failure=Failure("timeout", f"TimeLimit: not done after {seconds:g} s"))


def _receive(child: Child, answers: Connection) -> Any:
    """Return the child's next event, or a failure if the child died without sending one."""
    try:
        return answers.recv()
    except (EOFError, ConnectionResetError):  # reset: it died before it read what was sent to it
        return _report_death(child)
    except Exception as error:  # noqa: BLE001 - unpickling can raise anything if the pipe contains other data
        return Ended(failure=Failure("crash", f"ProcessDied: its result cannot be read: {first_line(error)}"))


def _report_death(child: Child) -> Ended:
    deadline = time.monotonic() + DYING
    while (code := exit_code(child)) is None and time.monotonic() < deadline:
        time.sleep(SOON)
    if code is None:
        said = "it closed its pipe, kept running, and was ended"
    else:
        said = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
    return Ended(failure=Failure("crash", f"ProcessDied: {said}"))


def exit_code(child: Child) -> int | None:
    """Return a dead child's exit code, negative for a signal, or None while it runs. On Linux the id isn't reused before `end`."""
    if sys.platform != "linux" or not hasattr(os, "waitid"):
        return _waited_for(child)
    assert child.pid is not None
    try:
        found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:  # the child has already been waited for
        return _waited_for(child)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _waited_for(child: Child) -> int | None:
    return child.poll() if isinstance(child, subprocess.Popen) else child.exitcode


def memory_of(child: Child, whole: bool = True) -> int:
    """Return the resident memory in bytes of the child and, if `whole`, its descendants; 0 if the child is gone."""
    import psutil

    try:
        parent = psutil.Process(child.pid)
        return sum(process.memory_info().rss for process in (parent, *(parent.children(recursive=True) if whole else ())))
    except psutil.NoSuchProcess:
        return 0


def end(child: Child) -> None:
    """End the child and all its descendants. If the child is already dead, end all processes left in its group."""
    assert child.pid is not None
    for process in descendants(child.pid):
        kill(process)
    if hasattr(os, "killpg"):  # Windows has no process groups
        with suppress(ProcessLookupError, PermissionError):  # the child has not created its group yet, or the group is empty
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    if isinstance(child, subprocess.Popen):
        child.wait()
    else:
        child.join()


def descendants(process: int | None = None) -> set[int]:
    """Return the ids of a process's descendants, this process's by default. Zombies are included."""
    import psutil

    try:
        return {started.pid for started in psutil.Process(process).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def started_with(variable: str, value: str) -> set[int]:
    """Return the processes with this environment variable, either in their own environment or inherited at their start."""
    import psutil

    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it belongs to another user, or has ended
            if process.environ().get(variable) == value:
                found.add(process.pid)
    return found


def end_descendants(kept: Collection[int]) -> None:
    """End this process's descendants, except for some. After `adopt_orphans`, this includes processes that its children left behind."""
    while others := descendants().difference(kept):
        for process in others:
            kill(process)
        for process in others:
            with suppress(ChildProcessError):  # not yet a child of this process
                os.waitpid(process, 0)


def kill(process: int) -> None:
    """Kill a process, unless it has already ended."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        psutil.Process(process).kill()


def _run_in_child(call: Callable[[Callable[[Any], None]], Any], answers: Connection, anew: bool) -> None:
    if hasattr(os, "setsid"):
        os.setsid()
    if not anew:
        os.environ.update(NO_GPU)
    die_with_parent()
    _keep_what_is_the_parents()
    faulthandler.disable()  # its output file may not be one of those redirected here
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (STDIN, STDOUT, STDERR):
        os.dup2(nowhere, descriptor)
    _send(answers, _run_to_end(call, answers.send))
    answers.close()
    os._exit(0)  # skip exit handlers and threads of the call, which could block the exit


def _keep_what_is_the_parents() -> None:
    """Keep objects that depend on the parent's threads, which a fork doesn't copy, from being freed or waited for."""
    freeze_until_exit()  # the destructor of a garbage session would wait for threads that don't exist here
    if (tqdm := sys.modules.get("tqdm")) is not None:
        tqdm.tqdm.set_lock(threading.RLock())  # tqdm's lock is shared by all forks, and a killed fork may never release it


def _send(answers: Connection, ended: Ended) -> None:
    """Send the result; if it cannot be pickled, send that error as the failure."""
    try:
        answers.send(ended)
    except Exception as error:  # noqa: BLE001 - pickle raises what the value's own class raises
        answers.send(Ended(failure=failure_of(error)))


def _run_to_end(call: Callable[[Callable[[Any], None]], Any], tell: Callable[[Any], None]) -> Ended:
    try:
        return Ended(call(tell))
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - it is sent through the pipe as text
        return Ended(failure=failure_of(error))


def failure_of(error: BaseException) -> Failure:
    """Convert an exception and its traceback to text."""
    causes = list(chain(error))
    message = "\n".join(f"{type(cause).__name__}: {ANSI.sub('', str(cause)).strip()}" for cause in reversed(causes))
    types = dict.fromkeys(kind.__name__ for cause in causes for kind in type(cause).__mro__)
    frames = [Frame(f.filename, f.lineno or 0, f.name) for cause in causes for f in traceback.extract_tb(cause.__traceback__)]
    notes = tuple(note for cause in causes for note in getattr(cause, "__notes__", ()))
    internal = "InternalError" in types or is_internal(causes[-1], PACKAGE)
    return Failure("raised", first_line(error), message, tuple(types), tuple(frames[-DEEP:]), notes, internal)


def die_with_parent() -> None:
    """End this process when its parent ends. Works on Linux; elsewhere the process ends with its call."""
    if hasattr(signal, "SIGKILL"):
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Make this process the parent of orphans that its children leave behind. Works on Linux; elsewhere they are not adopted."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)
