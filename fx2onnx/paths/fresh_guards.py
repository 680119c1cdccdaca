"""Tests of sizes and numbers that values decide: which are open, and what is said of those that a file cannot have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import sympy

from ..guards.decisions import is_implied
from ..guards.dims import format_with_names
from ..guards.dynamic_shapes import OpenGuard
from ..guards.guard_origin import is_own, source_line
from ..guards.specialization import SpecializationGuard
from ..trace.events import Arguments
from ..trace.refusal import TraceUnsupported
from ..trace.size_domain import SizeDomain

FindValues = Callable[[SizeDomain, Arguments, sympy.Basic], SizeDomain]


class ValueTestRefused(TraceUnsupported):
    """A file cannot have both sides of a test of what values decide."""


@dataclass(frozen=True)
class ValueTest(OpenGuard):
    """A test of what values decide.

    Attributes:
        names_of: what its symbols are called.
    """

    names_of: Mapping[sympy.Symbol, str] = field(default_factory=dict)

    def refusal(self, why: str) -> TraceUnsupported:
        """Return the error for a test of which a file cannot have both sides."""
        return ValueTestRefused(f"the condition {format_with_names(self.test, self.names_of)} at {self.line} depends on values: {why}")

    def error(self) -> TraceUnsupported:  # type: ignore[override]
        """Return the error for a number that Python takes as it is."""
        return self.refusal("it is converted to a Python number")


def value_tests(axes: SizeDomain) -> Iterator[ValueTest]:
    """Yield the tests of the model's own code, or of a library's, that other values make come out another way."""
    for guard in axes.environment.guards:
        decided = axes.fresh.among(guard.expr)
        if not decided or not (is_own(guard.sloc, libraries=True) or isinstance(guard.sloc, SpecializationGuard)):
            continue
        if not is_implied(guard.expr, axes.ranges_of(guard.expr), axes.conditions):
            names = {**axes.names, **axes.fresh.names}
            test = sympy.Not(guard.expr) if isinstance(guard.expr, sympy.Ne) else guard.expr  # one node less
            yield ValueTest(test, {}, source_line(guard.sloc) or "a call of PyTorch", isinstance(guard.sloc, SpecializationGuard), names)
