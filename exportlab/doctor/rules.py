"""List the four ways to write a line of the user's otherwise whose meaning is certain; a trial shows whether they help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from .rewrite import CannotRewrite, Change, Source, checked_in_python, to_cond
from .rewrite_values import cast_mask_to_bool, remove_scalar_reads


@dataclass(frozen=True)
class Rule:
    """What it does, in words for the user, and the change that it makes."""

    what: str
    make: Callable[[Source], Change]


RULES = (
    Rule("make the check in Python alone: an export leaves it out", checked_in_python),
    Rule("keep the value a tensor", remove_scalar_reads),
    Rule("make a mask of bools of the mask of bytes", cast_mask_to_bool),
    Rule("make a torch.cond of the branch: both arms are in the file", to_cond),
)


def propose_changes(source: Source) -> Iterator[tuple[Rule, Change]]:
    """Yield each rule that fits the line, and the change that it makes."""
    for rule in RULES:
        with suppress(CannotRewrite):
            yield rule, rule.make(source)
