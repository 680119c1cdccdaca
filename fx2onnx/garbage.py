"""Garbage collection during an export: what was there before is left out, since a collection of all of torch takes half a second."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def older_objects_frozen() -> Iterator[None]:
    """Keep, while it lasts, the garbage collector to objects that are made meanwhile; a caller that froze some itself is left alone."""
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
