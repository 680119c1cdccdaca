"""A call that takes too long is ended, also where its code catches every exception."""

from __future__ import annotations

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
