"""Limit eager's time for generated values, because a loop that depends on them may never end."""

from __future__ import annotations

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
    """Interrupt a block after a number of seconds. There is no limit outside the main thread, because signals don't reach other threads.

    Raises:
        TooSlow: the limit was exceeded.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise TooSlow(f"took longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
