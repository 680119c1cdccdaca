"""Guards on data-dependent sizes and numbers: find the undecided ones, and the error for those that cannot be exported."""

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
    """Not both branches of a data-dependent test can be exported."""


@dataclass(frozen=True)
class ValueTest(OpenGuard):
    """A test of a data-dependent size or number.

    Attributes:
        names_of: the names of its symbols.
    """

    names_of: Mapping[sympy.Symbol, str] = field(default_factory=dict)

    def refusal(self, why: str) -> TraceUnsupported:
        """Return the error for a test of which not both branches can be exported."""
        return ValueTestRefused(f"the condition {format_with_names(self.test, self.names_of)} at {self.line} depends on values: {why}")

    def error(self) -> TraceUnsupported:  # type: ignore[override]
        """Return the error for a number that Python uses as a constant."""
        return self.refusal("it is converted to a Python number")


def value_tests(axes: SizeDomain) -> Iterator[ValueTest]:
    """Yield the guards, in the model's code or a library's, that have another outcome for other values."""
    for guard in axes.environment.guards:
        decided = axes.fresh.among(guard.expr)
        if not decided or not (is_own(guard.sloc, libraries=True) or isinstance(guard.sloc, SpecializationGuard)):
            continue
        if not is_implied(guard.expr, axes.ranges_of(guard.expr), axes.conditions):
            names = {**axes.names, **axes.fresh.names}
            test = sympy.Not(guard.expr) if isinstance(guard.expr, sympy.Ne) else guard.expr  # one node less
            yield ValueTest(test, {}, source_line(guard.sloc) or "a call of PyTorch", isinstance(guard.sloc, SpecializationGuard), names)
