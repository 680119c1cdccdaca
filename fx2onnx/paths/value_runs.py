"""Choose the values of runs whose sizes depend on values, and check which runs a program covers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

import sympy

from ..errors import ToOnnxError, first_sentence
from ..guards.error_text import said_by
from ..guards.guard_origin import is_own
from ..guards.witnesses import sizes_near
from ..trace.events import Arguments, Trace, first_difference
from ..trace.fresh_symbols import Pretended
from ..trace.path_decisions import PathDecisions, is_deliberate
from ..trace.refusal import AlwaysRaises, CallSequenceDiverged, NeedsRealValues, Restart, TraceUnsupported
from ..trace.run import trace
from ..trace.size_domain import SizeAssignment, SizeDomain, environment_of
from ..trace.value_witnesses import GIVEN, OTHERS, Values
from .session import Session

SMALL = (3, 2, 5, 1, 0)  # numbers that a run pretends to read
NEAR = 12
MOST_TRIED = 20_000


def find_values(session: Session, axes: SizeDomain, arguments: Arguments, test: sympy.Basic) -> SizeDomain:
    """Return the domain in which a data-dependent test holds, with values that satisfy it and a new environment.

    Raises:
        TraceUnsupported: If none of the values tried satisfies it.
    """
    apart = replace(axes, conditions=(*axes.conditions, test), environment=environment_of(axes.example, axes.names))
    answers = max((axes.fresh.origins[symbol].answers for symbol in axes.fresh.among(test)), key=len)
    for is_off_trace in (False, True):
        for values in dict.fromkeys((axes.values, GIVEN, *OTHERS)):
            tried = replace(apart, values=values)
            found = _run(session, tried, arguments, session.decisions(answers))
            if found is not None and found[1].is_off_trace is is_off_trace and holds(tried, found[0], tried.example, test):
                return tried
    return _pretend_sizes(session, replace(apart, pretends=True), arguments, answers, test)


def _pretend_sizes(session: Session, axes: SizeDomain, arguments: Arguments, given: Sequence[bool], test: sympy.Basic) -> SizeDomain:
    """Return the domain with pretended sizes that satisfy a test, for when no values do.

    Raises:
        TraceUnsupported: If the model does not run with them.
        AlwaysRaises: If the model raises deliberately.
    """
    if (pretended := pretended_at(axes, axes.example)) is None:
        raise TraceUnsupported(f"no values were found with which {axes.format_size(test)} is true")
    errors: list[Exception] = []
    if _run(session, axes, arguments, session.decisions(given, pretended), errors) is None:
        if errors and is_deliberate(errors[0]):
            raise AlwaysRaises(f"{type(errors[0]).__name__}: {first_sentence(errors[0])}")
        raise TraceUnsupported(
            f"no values were found with which {axes.format_size(test)} is true{''.join(f' ({said_by(one)})' for one in errors[:1])}"
        )
    return axes


def pretended_at(axes: SizeDomain, setting: SizeAssignment) -> Pretended | None:
    """Return values of symbols that satisfy the conditions; None if real values do, or if none were found."""
    tests = [test.subs(setting) for test in axes.conditions if axes.fresh.among(test)] if axes.pretends else []
    symbols = sorted({symbol for test in tests for symbol in axes.fresh.among(test)}, key=str)
    tried = product(*([*SMALL, *_near(symbol, tests)] for symbol in symbols))
    numbers = (dict(zip(symbols, one, strict=True)) for one in islice(tried, MOST_TRIED))
    found = next((one for one in numbers if all(test.subs(one) == sympy.true for test in tests)), {})
    return Pretended(axes.fresh, found) if found else None


def _near(symbol: sympy.Symbol, tests: Sequence[sympy.Basic]) -> Iterator[int]:
    """Yield numbers near the boundaries of a symbol's tests, limited in number, and -1 if it may be negative."""
    yield from (number for test in tests if test.free_symbols == {symbol} for number in sizes_near(test)[:NEAR])
    if not symbol.is_nonnegative:
        yield -1


def holds(axes: SizeDomain, found: Trace, setting: SizeAssignment, *present: sympy.Basic) -> bool:
    """Return whether a run satisfies the conditions of a domain and defines the symbols in `present`."""
    numbers = axes.fresh.numbers_in(found)
    if any(symbol not in numbers for test in present for symbol in axes.fresh.among(test)):
        return False
    return all(axes.fresh.satisfies(test, found, setting) for test in axes.conditions if axes.fresh.among(test))


class ValueRuns:
    """Decides which runs of a model with data-dependent sizes make the calls of a program.

    Attributes:
        decides: whether values decide a size, or a number that Python reads.
        reference: the run at the example's sizes.
    """

    def __init__(self) -> None:
        self.decides = False
        self.reference: Trace | None = None
        self._apart: list[tuple[dict[sympy.Symbol, int], Trace, str]] = []  # other runs: their sizes, and the first different call

    def values(self, axes: SizeDomain) -> Iterator[Values]:
        """Yield the values to try for a run."""
        yield from dict.fromkeys((axes.values, GIVEN, *OTHERS))

    def decide_in(self, found: Trace) -> bool:
        """Return whether any run up to this one has a data-dependent size."""
        self.decides = self.decides or any(row.by_values for row in found.rows)
        return self.decides

    def begin(self, axes: SizeDomain, run: Callable[[SizeDomain], tuple[Trace, PathDecisions]]) -> tuple[SizeDomain, list[bool]]:
        """Choose values that lead to all outcomes without overriding them, if possible; return the domain and the outcomes.

        Args:
            run: runs the model at the example's sizes with the values of a domain.
        """
        first: tuple[SizeDomain, Trace, PathDecisions] | None = None
        refused: TraceUnsupported | None = None
        for values in self.values(axes):
            tried = replace(axes, values=values)
            try:
                found, script = run(tried)
            except ToOnnxError as error:
                if type(error) is not TraceUnsupported:
                    raise
                refused = refused or error
                continue
            except Exception:  # noqa: BLE001 - the model does not accept these values
                continue
            if not holds(tried, found, tried.example):
                continue
            first = first or (tried, found, script)
            if not script.is_off_trace:
                first = tried, found, script
                break
        if first is None:
            raise refused or TraceUnsupported("the model raises an error with all values that were tried")
        chosen, self.reference, script = first
        return chosen, script.answers

    def takes(self, axes: SizeDomain, setting: SizeAssignment, found: Trace) -> bool:
        """Return whether a run makes the calls of the reference, and store one that should but does not."""
        assert self.reference is not None
        if not holds(axes, found, setting):
            return False
        number = first_difference(self.reference, found)
        if number is not None:
            call = str(found.rows[number].op) if number < len(found.rows) else "no further operator"
            self._apart.append((dict(setting), found, call))
        return number is None

    def check_apart(self, axes: SizeDomain) -> None:
        """Refuse a model that makes other calls with some values, if no guard explains it.

        Raises:
            CallSequenceDiverged: If there is such a run.
        """
        guards = [guard.expr for guard in axes.environment.guards if is_own(guard.sloc, libraries=True)]
        for setting, found, call in self._apart:
            numbers = {**setting, **axes.fresh.numbers_in(found)}
            if not any(guard.subs(numbers) == sympy.false for guard in guards):
                raise CallSequenceDiverged(f"no condition explains why the model calls {call} where values decide other sizes")


def _run(
    session: Session, axes: SizeDomain, arguments: Arguments, script: PathDecisions, errors: list[Exception] | None = None
) -> tuple[Trace, PathDecisions] | None:
    """Return a run at the example's sizes and its decisions; None if it raises, with the exception in `errors`."""
    while True:
        try:
            return trace(session.model, axes.at(arguments, axes.example), script=script), script
        except Restart as error:
            if error.refine(session.plan) is session.plan:
                return None
            session.refine(error)
            script = session.decisions(script.given, script.pretended)
        except NeedsRealValues:
            raise
        except Exception as error:  # noqa: BLE001 - the model does not accept these values
            if errors is not None:
                errors.append(error)
            return None
