"""How long eager may take for values that were made up: a loop that ends by them may never end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

AT_LEAST = 10.0  # seconds
TIMES = 20.0  # what a given sample takes
AGAIN = 1.0  # seconds after which a block is stopped once more: code that catches every exception catches this one as well


class TooSlow(RuntimeError):
    """It took longer than it may."""


@dataclass
class Patience:
    """The seconds that a call with other values may take: some times what the slowest of the given calls took."""

    seconds: float = field(default_factory=lambda: AT_LEAST)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Take in how long the block takes; one that raises says nothing."""
        start = time.perf_counter()
        yield
        self.seconds = max(self.seconds, TIMES * (time.perf_counter() - start))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the block after so many seconds; in a thread that is not the main one, which no signal reaches, it may take any time.

    Raises:
        TooSlow: it took longer.
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
