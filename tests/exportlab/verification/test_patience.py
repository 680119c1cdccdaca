"""A call that takes too long is ended, also where its code catches every exception."""

from __future__ import annotations

from contextlib import suppress

import pytest

from exportlab.verification import patience


def _catches_the_first_stop() -> None:
    with suppress(RuntimeError):
        _never_ends()
    _never_ends()


def _never_ends() -> None:
    while True:
        pass


def test_a_block_that_catches_the_first_stop_is_stopped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "AGAIN", 0.05)
    with patience.at_most(0.05), pytest.raises(patience.TooSlow):
        _catches_the_first_stop()
