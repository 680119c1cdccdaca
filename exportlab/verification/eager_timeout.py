"""Limit eager's time for generated values, because a loop that depends on them may never end."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

AT_LEAST = 10.0  # minimum limit in seconds
TIMES = 20.0  # limit as a multiple of the slowest given sample
AGAIN = 1.0  # seconds between repeated interrupts, since code that catches all exceptions also catches this one


class TooSlow(RuntimeError):
    """The call exceeded its time limit."""


@dataclass
class Patience:
    """The time limit in seconds for calls with generated values: a multiple of the slowest given call."""

    seconds: float = field(default_factory=lambda: AT_LEAST)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure a block and raise the limit if necessary; a block that raises an error is ignored."""
        start = time.perf_counter()
        yield
        self.seconds = max(self.seconds, TIMES * (time.perf_counter() - start))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt a block after a number of seconds, and again until it ends. Code that isn't Python is interrupted when it returns.

    Raises:
        TooSlow: the limit was exceeded.
    """
    has_alarm = hasattr(signal, "SIGALRM")  # Windows has none
    in_main_thread = threading.current_thread() is threading.main_thread()  # signals don't reach other threads
    with _limit_with_signal(seconds) if has_alarm and in_main_thread else _limit_with_thread(seconds):
        yield


@contextmanager
def _limit_with_signal(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooSlow(_describe(seconds))

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _limit_with_thread(seconds: float) -> Iterator[None]:
    """Interrupt a block from a second thread, which needs no signals."""
    interrupted, lock, ended = ctypes.c_ulong(threading.get_ident()), threading.Lock(), threading.Event()

    def watch() -> None:
        wait = seconds
        while not ended.wait(wait):
            with lock:
                if not ended.is_set():
                    _raise_in_thread(interrupted, ctypes.py_object(TooSlow))
            wait = AGAIN

    threading.Thread(target=watch, name="time limit", daemon=True).start()
    try:
        yield
    except TooSlow as error:  # CPython creates the exception without a message
        raise TooSlow(_describe(seconds)) from error.__cause__
    finally:
        with lock:
            ended.set()
        _raise_in_thread(interrupted, None)  # discard an interrupt that has not been delivered


def _raise_in_thread(thread: ctypes.c_ulong, error: ctypes.py_object[type[TooSlow]] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)


def _describe(seconds: float) -> str:
    return f"took longer than {seconds:.0f} s"
