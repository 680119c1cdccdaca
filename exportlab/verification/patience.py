"""How long eager may take for values that were made up: a loop that ends by them may never end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from ..cases import Sample
from ..eager import called_once

AT_LEAST = 10.0  # seconds
TIMES = 20.0  # what the first sample takes


class TooSlow(RuntimeError):
    """It took longer than it may."""


def patience_for(module: nn.Module, first: Sample) -> float:
    """Return the seconds that a call with other values may take, measured by a call with these."""
    start = time.perf_counter()
    try:
        called_once(module, first)
    except Exception:  # noqa: BLE001 - what eager refuses is told where it is verified
        return AT_LEAST
    return max(AT_LEAST, TIMES * (time.perf_counter() - start))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
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
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
