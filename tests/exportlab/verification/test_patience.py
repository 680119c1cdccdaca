"""A call that takes too long is ended, also where its code catches every exception."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from exportlab.verification import eager_timeout


def _catches_the_first_stop() -> None:
    with suppress(RuntimeError):
        _never_ends()
    _never_ends()


def _never_ends() -> None:
    while True:
        pass


def test_a_block_that_catches_the_first_stop_is_stopped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_timeout, "AGAIN", 0.05)
    with eager_timeout.time_limit(0.05), pytest.raises(eager_timeout.TooSlow):
        _catches_the_first_stop()


def test_without_alarms_a_block_is_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_timeout, "AGAIN", 0.05)
    monkeypatch.delattr(signal, "SIGALRM")
    with pytest.raises(eager_timeout.TooSlow, match="took longer than 0 s"), eager_timeout.time_limit(0.05):
        _catches_the_first_stop()
    with eager_timeout.time_limit(60):
        pass
    time.sleep(0.2)  # a stop that is late would arrive here


def test_a_block_in_another_thread_is_stopped_too() -> None:
    def limited() -> str:
        with pytest.raises(eager_timeout.TooSlow) as caught, eager_timeout.time_limit(0.05):
            _never_ends()
        return str(caught.value)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(limited).result(timeout=20) == "took longer than 0 s"
