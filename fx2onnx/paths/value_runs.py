"""Runs of a model whose sizes values decide: with which values, and whether a run is one of those that a program explains."""

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

SMALL = (3, 2, 5, 1, 0)  # numbers that a run pretends to have
NEAR = 12
MOST_TRIED = 20_000


def find_values(session: Session, axes: SizeDomain, arguments: Arguments, test: sympy.Basic) -> SizeDomain:
    """Return the axes where a test of what values decide holds, with values with which it does, and an environment of their own.

    Raises:
        TraceUnsupported: none of those tried makes it hold.
    """
    apart = replace(axes, conditions=(*axes.conditions, test), environment=environment_of(axes.example, axes.names))
    answers = max((axes.fresh.origins[symbol].answers for symbol in axes.fresh.among(test)), key=len)
    for is_off_trace in (False, True):
        for values in dict.fromkeys((axes.values, GIVEN, *OTHERS)):
            tried = replace(apart, values=values)
            found = _run(session, tried, arguments, session.decisions(answers))
            if found is not None and found[1].is_off_trace is is_off_trace and holds(tried, found[0], tried.example, test):
                return tried
    return _pretending(session, replace(apart, pretends=True), arguments, answers, test)


def _pretending(session: Session, axes: SizeDomain, arguments: Arguments, given: Sequence[bool], test: sympy.Basic) -> SizeDomain:
    """Return the axes where a test holds that no values make hold, where the model runs with sizes that do.

    Raises:
        TraceUnsupported: it does not. AlwaysRaises: it raises an error of its own there.
    """
    if (pretended := pretended_at(axes, axes.example)) is None:
        raise TraceUnsupported(f"no values were found with which {axes.format_size(test)} is true")
    told: list[Exception] = []
    if _run(session, axes, arguments, session.decisions(given, pretended), told) is None:
        if told and is_deliberate(told[0]):
            raise AlwaysRaises(f"{type(told[0]).__name__}: {first_sentence(told[0])}")
        raise TraceUnsupported(
            f"no values were found with which {axes.format_size(test)} is true{''.join(f' ({said_by(one)})' for one in told[:1])}"
        )
    return axes


def pretended_at(axes: SizeDomain, setting: SizeAssignment) -> Pretended | None:
    """Return numbers for the symbols of the conditions with which these hold; None where values do, or none were found."""
    tests = [test.subs(setting) for test in axes.conditions if axes.fresh.among(test)] if axes.pretends else []
    symbols = sorted({symbol for test in tests for symbol in axes.fresh.among(test)}, key=str)
    tried = product(*([*SMALL, *_near(symbol, tests)] for symbol in symbols))
    numbers = (dict(zip(symbols, one, strict=True)) for one in islice(tried, MOST_TRIED))
    found = next((one for one in numbers if all(test.subs(one) == sympy.true for test in tests)), {})
    return Pretended(axes.fresh, found) if found else None


def _near(symbol: sympy.Symbol, tests: Sequence[sympy.Basic]) -> Iterator[int]:
    """Yield numbers near to where the tests of a symbol change, as few as there are, and one below zero of what may be that."""
    yield from (number for test in tests if test.free_symbols == {symbol} for number in sizes_near(test)[:NEAR])
    if not symbol.is_nonnegative:
        yield -1


def holds(axes: SizeDomain, found: Trace, setting: SizeAssignment, *present: sympy.Basic) -> bool:
    """Return whether a run is one of those that axes are about; what is present has to have its symbols in it."""
    numbers = axes.fresh.numbers_in(found)
    if any(symbol not in numbers for test in present for symbol in axes.fresh.among(test)):
        return False
    return all(axes.fresh.satisfies(test, found, setting) for test in axes.conditions if axes.fresh.among(test))


class ValueRuns:
    """Which runs of a model whose sizes values decide make the calls that a program has.

    Attributes:
        decides: whether values decide a size or a number that Python takes.
        reference: the run at the example's sizes.
    """

    def __init__(self) -> None:
        self.decides = False
        self.reference: Trace | None = None
        self._apart: list[tuple[dict[sympy.Symbol, int], Trace, str]] = []  # runs that make other calls: their sizes and numbers

    def values(self, axes: SizeDomain) -> Iterator[Values]:
        """Yield the values that a run at some sizes may have."""
        yield from dict.fromkeys((axes.values, GIVEN, *OTHERS))

    def decide_in(self, found: Trace) -> bool:
        """Return whether values decide a size in any run up to this one."""
        self.decides = self.decides or any(row.by_values for row in found.rows)
        return self.decides

    def begin(self, axes: SizeDomain, run: Callable[[SizeDomain], tuple[Trace, PathDecisions]]) -> tuple[SizeDomain, list[bool]]:
        """Choose values that lead to all answers by themselves, where those of the axes do not; return the axes and the answers.

        Args:
            run: runs the model at the example's sizes with values of such axes.
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
            except Exception:  # noqa: BLE001 - values that the model does not take
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
        """Return whether a run makes the calls of the reference; one that should and does not is kept apart."""
        assert self.reference is not None
        if not holds(axes, found, setting):
            return False
        number = first_difference(self.reference, found)
        if number is not None:
            told = str(found.rows[number].op) if number < len(found.rows) else "no further operator"
            self._apart.append((dict(setting), found, told))
        return number is None

    def check_apart(self, axes: SizeDomain) -> None:
        """Refuse a model that makes other calls with some values, and no test that has another side tells why.

        Raises:
            CallSequenceDiverged: it does.
        """
        guards = [guard.expr for guard in axes.environment.guards if is_own(guard.sloc, libraries=True)]
        for setting, found, told in self._apart:
            numbers = {**setting, **axes.fresh.numbers_in(found)}
            if not any(guard.subs(numbers) == sympy.false for guard in guards):
                raise CallSequenceDiverged(f"no condition explains why the model calls {told} where values decide other sizes")


def _run(
    session: Session, axes: SizeDomain, arguments: Arguments, script: PathDecisions, told: list[Exception] | None = None
) -> tuple[Trace, PathDecisions] | None:
    """Return a run at the example's sizes and its decisions; None where the model does not take the values, with the error in `told`."""
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
        except Exception as error:  # noqa: BLE001 - values that the model does not take
            if told is not None:
                told.append(error)
            return None
