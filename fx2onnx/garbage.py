"""Garbage collection during an export: older objects are frozen, because a full collection with torch loaded costs half a second."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def older_objects_frozen() -> Iterator[None]:
    """Exclude all existing objects from garbage collection inside the context, unless the caller has already frozen some."""
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
