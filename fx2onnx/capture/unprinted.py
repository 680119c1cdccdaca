"""What torch prints and logs where it refuses a model: our error says it, so it is not shown beside that."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from torch import _guards
from torch.export import _trace
from torch.fx.experimental import symbolic_shapes

REFUSALS = {  # by the module that logs them, how they begin
    symbolic_shapes.__name__: (
        *("failed during evaluate_expr", "Failing guard allocated at"),
        *("Unable to find user code corresponding to", "pytree.tree_leaves_with_path failed"),
    ),
    _guards.__name__: ("Error while creating guard:", "Created at:"),
    _trace.__name__: ("See %s", "See ", "always_classified", "For more information about this error"),
}


@contextmanager
def refusals_unprinted() -> Iterator[None]:
    """Keep torch, while it lasts, from printing the graph as far as it was traced, and from logging why it refuses."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(_trace, "print", _prints_nothing, create=True))
        for module, beginnings in REFUSALS.items():
            stack.enter_context(_without(module, beginnings))
        yield


@contextmanager
def _without(module: str, beginnings: tuple[str, ...]) -> Iterator[None]:
    def is_other(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(beginnings)

    logger = logging.getLogger(module)
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def _prints_nothing(*_: Any, **__: Any) -> None:
    """Take the place of `print`, which that module calls for the graph alone."""
