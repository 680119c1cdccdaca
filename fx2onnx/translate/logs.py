"""Hides torch's log messages during calls that are expected to fail."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logged_from(level: int, module: str) -> Iterator[None]:
    """Hide log messages of this module of torch below a level inside the context; a level above all others hides everything."""
    logger = logging.getLogger(module)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
