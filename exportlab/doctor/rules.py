"""List the four rewrites of a line of code that preserve its meaning. A trial tests whether they help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from .rewrite import CannotRewrite, Change, Source, checked_in_python, to_cond
from .rewrite_values import cast_mask_to_bool, remove_scalar_reads


@dataclass(frozen=True)
class Rule:
    """A description of a rewrite for the report, and the function that makes the change."""

    what: str
    make: Callable[[Source], Change]


RULES = (
    Rule("skip this check during an export", checked_in_python),
    Rule("keep the value a tensor", remove_scalar_reads),
    Rule("convert the byte mask to a Boolean mask", cast_mask_to_bool),
    Rule("replace the if with torch.cond, which exports both branches", to_cond),
)


def propose_changes(source: Source) -> Iterator[tuple[Rule, Change]]:
    """Yield each rule that applies to the line, and its change."""
    for rule in RULES:
        with suppress(CannotRewrite):
            yield rule, rule.make(source)
