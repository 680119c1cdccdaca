"""Silence what torch prints and logs when it cannot export a model, because our own error covers it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..compat import exporting  # noqa: F401 - it imports what is patched
from .registry import register_context, register_patch

REFUSALS = {  # by the module that logs them, their first words
    "torch.fx.experimental.symbolic_shapes": (
        *("failed during evaluate_expr", "Failing guard allocated at"),
        *("Unable to find user code corresponding to", "pytree.tree_leaves_with_path failed"),
    ),
    "torch._guards": ("Error while creating guard:", "Created at:"),
    "torch.export._trace": ("See %s", "See ", "always_classified", "For more information about this error"),
}


@register_patch(
    "quiet_logs", "torch.export._trace.print", creates=True, reason="torch prints the partial graph when it cannot export the model"
)
def _print_nothing(original: Any) -> Any:
    return lambda *_, **__: None


@register_context(
    "quiet_logs",
    *(f"the logger {name}" for name in REFUSALS),
    reason="torch logs why it cannot export the model, which our own error covers",
)
@contextmanager
def _filter_export_logs() -> Iterator[None]:
    """Filter log messages that start like one of these."""
    filters = {name: _filter_of(beginnings) for name, beginnings in REFUSALS.items()}
    for name, is_other in filters.items():
        logging.getLogger(name).addFilter(is_other)
    try:
        yield
    finally:
        for name, is_other in filters.items():
            logging.getLogger(name).removeFilter(is_other)


def _filter_of(beginnings: tuple[str, ...]) -> Any:
    return lambda record: not str(record.msg).startswith(beginnings)
