"""A call in a child of this process, forked or started anew, under limits of time and memory: what came of it."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Literal

from .diagnostics import ANSI
from .messages import chain, first_line
from .outcomes import Outcome

STDIN, STDOUT, STDERR = 0, 1, 2
OFTEN = 0.1  # seconds between two looks at the memory of a child
DYING, SOON = 5.0, 0.01  # seconds that a child may take to die once it has closed its pipe, and between two looks
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # man 2 prctl
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # in a fork: `torch.cuda.is_available()` in its parent is enough for CUDA to refuse to start there
DEEP = 60  # frames of a traceback that are kept, the innermost ones


@dataclass(frozen=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Failure:
    """Why there is no value.

    Attributes:
        kind: `raised`, `timeout` or `crash`.
        error: type and first line of what was raised, or what ended the child.
        message: the whole message, its first cause first. types: of the error and its causes, base classes included.
        frames: the traceback of the error and its causes, the first cause last and its innermost line at the very end.
        notes: what was added to them on their way.
    """

    kind: Literal["raised", "timeout", "crash"]
    error: str
    message: str = ""
    types: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The outcome of an export in this call, which is to report by itself whatever the exporter raises: the rest is a `crash`."""
        return Outcome.TIMEOUT if self.kind == "timeout" else Outcome.CRASH


@dataclass(frozen=True)
class Ended:
    """How a call ended: with a value, or with a failure."""

    value: Any = None
    failure: Failure | None = None


class Abandoned(Exception):
    """Whoever waited for the call is gone; it was ended."""


def run_isolated(call: Callable[[], Any], *, seconds: float, memory: int, until: int | None = None, anew: bool = False) -> Ended:
    """Call `call` in a child, and say how that ended. Arguments and errors are those of `events`."""
    for ended in events(partial(_call_without_events, call), seconds=seconds, memory=memory, until=until, anew=anew):
        if isinstance(ended, Ended):
            return ended
    raise AssertionError("a call ends in one way or another")


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
    """Call `call` in a child; yield what it tells by the function that it is given, and last an `Ended`: how it ended.

    A forked child sees all that this process holds without a copy. What the call tells and returns comes back by pickle; whatever it
    prints goes nowhere. All that it started ends with it.

    Args:
        memory: bytes that the child and what it starts may take.
        until: a file descriptor; when it can be read, or is closed, the child is ended.
        whole: whether what the child starts counts as its memory; not where it keeps a limit for these itself.
        anew: start a new interpreter in place of a fork, which imports everything again; `call` goes there by pickle. CUDA needs it: it
            does not work in a fork of a process that has used it.

    Raises:
        Abandoned: `until` could be read.
    """
    context = multiprocessing.get_context("spawn" if anew else "fork")
    ours, theirs = context.Pipe(duplex=False)
    child: BaseProcess = context.Process(target=_run_in_child, args=(call, theirs, anew))  # type: ignore[attr-defined]
    child.start()
    theirs.close()
    try:
        yield from _watch_child(child, ours, seconds, partial(memory_of, child, whole), memory, until)
    finally:
        end(child)
        ours.close()


def _watch_child(
    child: BaseProcess, answers: Connection, seconds: float, taken: Callable[[], int], memory: int, until: int | None
) -> Iterator[Any]:
    """Yield what the child says, unless it dies or goes beyond a limit."""
    sources: list[Connection | int] = [answers] if until is None else [answers, until]
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
        elif exit_code(child) is not None and not answers.poll():  # what it started may still hold the pipe
            yield _report_death(child)
            return
        if taken() > memory:
            yield Ended(failure=Failure("crash", f"MemoryLimit: the process took more than {memory / 2**30:g} GiB and was ended"))
            return
    yield Ended(failure=Failure("timeout", f"TimeLimit: not done after {seconds:g} s"))


def _receive(child: BaseProcess, answers: Connection) -> Any:
    """Return what the child says, or how it died without a word."""
    try:
        return answers.recv()
    except EOFError:
        return _report_death(child)
    except Exception as error:  # noqa: BLE001 - whatever unpickling raises: another than `_send` wrote into the pipe
        return Ended(failure=Failure("crash", f"ProcessDied: what it said cannot be read: {first_line(error)}"))


def _report_death(child: BaseProcess) -> Ended:
    deadline = time.monotonic() + DYING
    while (code := exit_code(child)) is None and time.monotonic() < deadline:
        time.sleep(SOON)
    said = "it closed its pipe, went on, and was ended" if code is None else how_it_ended(code)
    return Ended(failure=Failure("crash", f"ProcessDied: {said}"))


def exit_code(child: BaseProcess) -> int | None:
    """Return that of a child that has died, negative for a signal; None while it lives. On Linux, its id stays its own until `end`."""
    if sys.platform != "linux":
        return child.exitcode
    assert child.pid is not None
    try:
        found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:  # somebody has asked before
        return child.exitcode
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def how_it_ended(code: int | None) -> str:
    """Return an exit code in words: `killed by SIGSEGV`."""
    return f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"exit code {code}"


def memory_of(child: BaseProcess, whole: bool = True) -> int:
    """Return bytes resident of the child, and where `whole` of what it started; none once it is gone."""
    import psutil

    try:
        parent = psutil.Process(child.pid)
        return sum(process.memory_info().rss for process in (parent, *(parent.children(recursive=True) if whole else ())))
    except psutil.NoSuchProcess:
        return 0


def end(child: BaseProcess) -> None:
    """End the child, and whatever it started: of what it left behind when it died, all that is still in its group."""
    assert child.pid is not None
    for process in _started_by(child.pid):
        _kill(process)
    with suppress(ProcessLookupError, PermissionError):  # it has not made its group yet, or nobody is left in it
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.join()


def descendants(process: int | None = None) -> set[int]:
    """Return the processes that this one started, or another one, and what these started; those that ended and wait to be asked, too."""
    return set(_started_by(os.getpid() if process is None else process))


def started_with(variable: str, value: str) -> set[int]:
    """Return the processes that have this in their environment, or had it when they were started: what one hands on to all it starts."""
    import psutil

    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it is another's, or has ended
            if process.environ().get(variable) == value:
                found.add(process.pid)
    return found


def end_descendants(kept: Collection[int]) -> None:
    """End whatever this process has started, but for some; with `adopt_orphans`, that is all that its children left behind."""
    while others := descendants().difference(kept):
        for process in others:
            _kill(process)
        for process in others:
            with suppress(ChildProcessError):  # it is this one's child in a moment
                os.waitpid(process, 0)


def _started_by(process: int) -> list[int]:
    import psutil

    try:
        return [started.pid for started in psutil.Process(process).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):  # it ended by itself
        os.kill(process, signal.SIGKILL)


def _run_in_child(call: Callable[[Callable[[Any], None]], Any], answers: Connection, anew: bool) -> None:
    os.setsid()
    if not anew:
        os.environ.update(NO_GPU)
    die_with_parent()
    _keep_what_is_the_parents()
    faulthandler.disable()  # its file may be one that is not redirected
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (STDIN, STDOUT, STDERR):
        os.dup2(nowhere, descriptor)
    _send(answers, _run_to_end(call, answers.send))
    answers.close()
    os._exit(0)  # what the call left behind (exit handlers, threads) must not keep it from ending


def _keep_what_is_the_parents() -> None:
    """Keep what needs threads of the parent, of which none came along, from being freed here, and from being waited for."""
    gc.freeze()  # a session that is garbage there would wait in its destructor for threads that are not here, for ever
    if (tqdm := sys.modules.get("tqdm")) is not None:
        tqdm.tqdm.set_lock(threading.RLock())  # tqdm's own is shared by all forks, and one that is ended may hold it


def _send(answers: Connection, ended: Ended) -> None:
    """A value that cannot be sent is a failure of the call."""
    try:
        answers.send(ended)
    except Exception as error:  # noqa: BLE001 - pickle raises what the value's own class raises
        answers.send(Ended(failure=failure_of(error)))


def _run_to_end(call: Callable[[Callable[[Any], None]], Any], tell: Callable[[Any], None]) -> Ended:
    try:
        return Ended(call(tell))
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - it crosses the pipe as text
        return Ended(failure=failure_of(error))


def failure_of(error: BaseException) -> Failure:
    """Return an error as text, with its traceback."""
    causes = list(chain(error))
    message = "\n".join(f"{type(cause).__name__}: {ANSI.sub('', str(cause)).strip()}" for cause in reversed(causes))
    types = dict.fromkeys(kind.__name__ for cause in causes for kind in type(cause).__mro__)
    frames = [Frame(f.filename, f.lineno or 0, f.name) for cause in causes for f in traceback.extract_tb(cause.__traceback__)]
    notes = tuple(note for cause in causes for note in getattr(cause, "__notes__", ()))
    return Failure("raised", first_line(error), message, tuple(types), tuple(frames[-DEEP:]), notes)


def die_with_parent() -> None:
    """End this process with the one that waits for it, however that ends. On Linux; elsewhere it ends with its call."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of what a child of this process leaves behind when it dies. On Linux; elsewhere it is nobody's."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)
