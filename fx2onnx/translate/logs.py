"""What torch logs while it is asked for something that it may not know."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logged_from(level: int, module: str) -> Iterator[None]:
    """While it lasts, what this module of torch logs below a level is not shown; from above all levels, nothing is."""
    logger = logging.getLogger(module)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
