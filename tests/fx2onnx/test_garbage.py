"""Objects that exist before an export: no collection looks at them, and none that the caller has frozen is released."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fx2onnx import garbage
from fx2onnx.garbage import older_objects_frozen


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_older_objects_are_frozen_for_a_while() -> None:
    with older_objects_frozen():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_what_the_caller_has_frozen_stays_frozen() -> None:
    gc.freeze()
    with older_objects_frozen():
        pass
    assert gc.get_freeze_count() > 0


def test_frozen_objects_are_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python counts them one by one, which takes longer than the export of a small model."""
    with older_objects_frozen():
        monkeypatch.setattr(garbage.gc, "get_freeze_count", lambda: pytest.fail("they are counted"))
        with older_objects_frozen():
            pass
        monkeypatch.undo()
        assert gc.get_freeze_count() > 0
