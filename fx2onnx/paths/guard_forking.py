"""Tests of moving sizes that do not come out alike: the sizes at which one holds, and the others, are captured apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import sympy

from ..errors import FrozenDimension, first_sentence
from ..guards.accepted_ranges import ACCEPTED, losses_by_tests
from ..guards.dims import format_with_names
from ..guards.dynamic_shapes import ADVICE, DimSize, OpenGuard, open_guards, quote_names, range_text
from ..guards.guard_origin import source_line
from ..ir.captured_program import RunProgram
from ..structure.paths_of_values import Path
from ..trace.canonical_indexing import are_calls_canonical, canonical_calls
from ..trace.events import Arguments
from ..trace.refusal import (
    AlwaysRaises,
    CallSequenceDiverged,
    ConstantDiverged,
    NeedsRealValues,
    NoFallback,
    TraceUnsupported,
    UnboundedGuardChain,
)
from ..trace.size_domain import SizeAssignment, SizeDomain, max_traced_size
from ..validate.special_sizes import settings_with_one
from .fresh_guards import FindValues, ValueTest, ValueTestRefused, value_tests
from .general_side import Side, find_general_side
from .guard_chains import check_chain

Capture = Callable[[SizeDomain, Arguments], list[Path]]
RANGES = 64  # of sizes that are captured: those that a test cuts again among them
VALUE_RANGES = 16  # where values decide what is tested
ASKED_AGAIN = (3, 5)  # times a line tells ranges apart, at which it may be a loop


class GuardForking:
    """The paths of a module at all sizes, found by one capture for the sizes on each side of a test.

    Args:
        capture: returns the paths at the sizes that some axes have.
        is_right_at: returns whether a program is right at sizes of one.
        note: runs it once at the example's sizes of some axes, whose environment then knows the tests on the way.
        find_values: returns the axes with values with which a test of what values decide holds.
        symbols: the axes that were asked to be dynamic.
        accepted: names of axes that may lose sizes.

    Attributes:
        limits: the sizes at which the model raises, and what.
    """

    def __init__(
        self,
        capture: Capture,
        note: Callable[[SizeDomain, Arguments], None],
        find_values: FindValues,
        is_right_at: Callable[[RunProgram, SizeDomain, Arguments, SizeAssignment], bool],
        symbols: Sequence[DimSize],
        accepted: Sequence[str],
    ) -> None:
        self._capture, self._note, self._is_right_at, self._symbols, self._accepted = capture, note, is_right_at, symbols, accepted
        self._find_values = find_values
        self._number = 0
        self._first: OpenGuard | None = None
        self._begun: tuple[SizeDomain, Arguments] | None = None  # before any test
        self._asked: Counter[str] = Counter()  # how often each line told ranges apart
        self.limits: dict[str, None] = {}

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Say, while it lasts, of what cannot be joined which test told it apart.

        Raises:
            FrozenDimension: a file has one side alone of a test.
        """
        try:
            yield
        except TraceUnsupported as error:
            if self._first is None:
                raise
            raise _one_side(self._first, error) from error

    def paths(self, axes: SizeDomain, arguments: Arguments) -> list[Path]:
        """Return the paths at the sizes that these axes have, and at those further ones that a test leaves to them.

        Raises:
            TraceUnsupported: runs do not show enough at some of them. FrozenDimension: an axis loses sizes to a test.
        """
        found: list[Path] = []
        failed: TraceUnsupported | None = None
        self._number += 1
        try:
            found = self._capture(axes, arguments)
        except NeedsRealValues:
            raise
        except TraceUnsupported as error:
            failed = error
        differs = isinstance(failed, (CallSequenceDiverged, ConstantDiverged)) or any(path.diverges_at_one for path in found)
        opened = self._open(axes, libraries=differs and are_calls_canonical())
        tests = [test for test in opened if not self._is_covered(test, found, axes, arguments)] + list(value_tests(axes))
        two_sided = [test for test in tests if _is_splittable(test, axes)]
        if found_in_parts := next(filter(None, (self._explore_chunked(test, axes, arguments) for test in two_sided)), None):
            return found_in_parts
        if (test := next((test for test in two_sided if _ends(test.test, axes)), None)) is not None:
            return self._both(test, axes, arguments)
        if failed is not None and not isinstance(failed, (CallSequenceDiverged, ConstantDiverged)):
            raise failed
        if (test := next(self._constants_among_few(axes), None)) is not None:
            return self._both(test, axes, arguments)
        self.limits |= dict.fromkeys(_constants_accepted(axes, self._symbols, self._accepted))
        if failed is not None:
            raise failed
        for test in tests:
            raise test.error()
        self.limits |= dict.fromkeys(losses_by_tests(axes.environment, self._moving(axes), self._accepted, axes.conditions))
        return found

    def _is_covered(self, test: OpenGuard, found: Sequence[Path], axes: SizeDomain, arguments: Arguments) -> bool:
        """Whether the side of a test that has more sizes is right at one element as well, where alone the test comes out another way."""
        settings = settings_with_one(test.test, axes) if len(found) == 1 and found[0].exception is None else []
        return bool(settings) and all(self._is_right_at(found[0].program, axes, arguments, setting) for setting in settings)

    def _explore_chunked(self, test: OpenGuard, axes: SizeDomain, arguments: Arguments) -> list[Path]:
        """Return the paths where a loop over parts of an axis is rolled up; none where runs at several parts do not show one."""
        if isinstance(test, ValueTest) or (moved := axes.chunk_axis(test.test, arguments)) is None:
            return []
        try:
            return self.paths(*moved)
        except (UnboundedGuardChain, NeedsRealValues):
            raise
        except CallSequenceDiverged as error:  # as a slice of the only part is
            if are_calls_canonical():
                raise TraceUnsupported(str(error)) from error
            with canonical_calls():
                return self._explore_chunked(test, axes, arguments)
        except TraceUnsupported:
            return []

    def _constants_among_few(self, axes: SizeDomain) -> Iterator[OpenGuard]:
        """Yield a test for the largest size of each axis to which a test has left few sizes, and that became a constant."""
        for dim, symbol in self._moving(axes) if axes.conditions else ():
            if axes.environment.replace(symbol).is_number and axes.has_few_sizes(symbol):
                line = source_line(axes.environment.replacements_slocs[symbol]) or "a call of PyTorch"
                yield OpenGuard(sympy.Eq(symbol, axes.candidates(symbol)[-1]), {symbol: dim}, line)

    def _restrict_to_side(self, test: OpenGuard, side: sympy.Basic, axes: SizeDomain, arguments: Arguments) -> tuple[SizeDomain, Arguments]:
        """Return the axes, and arguments, where a test comes out so."""
        return (self._find_values(axes, arguments, side), arguments) if isinstance(test, ValueTest) else axes.assume(side, arguments)

    def _open(self, axes: SizeDomain, libraries: bool) -> Iterator[OpenGuard]:
        return open_guards(axes.environment, self._moving(axes), self._accepted, axes.conditions, libraries=libraries)

    def _trace_guards(self, axes: SizeDomain, arguments: Arguments) -> Iterator[OpenGuard]:
        """The tests of a run at the example's sizes."""
        self._note(axes, arguments)
        return self._open(axes, libraries=True)

    def _moving(self, axes: SizeDomain) -> list[DimSize]:
        """The axes whose sizes still move."""
        return [(dim, size) for dim, size in self._symbols if set(size.free_symbols) <= set(axes.example)]  # type: ignore[union-attr]

    def _both(self, test: OpenGuard, axes: SizeDomain, arguments: Arguments) -> list[Path]:
        """Return the paths on both sides of a test."""
        self._first = self._first or test
        self._begun = self._begun or (axes, arguments)
        self._asked[test.line] += 1
        if self._asked[test.line] in ASKED_AGAIN and not isinstance(test, ValueTest):
            check_chain(test, *self._begun, self._trace_guards, axes.example)
        found: list[Path] = []
        never: list[AlwaysRaises] = []
        sides: list[Side] = []
        for side in (test.test, sympy.Not(test.test)):
            try:
                most = VALUE_RANGES if isinstance(test, ValueTest) else RANGES
                if self._number > most:
                    raise TraceUnsupported(f"conditions on sizes make more than {most} ranges")
                restricted = self._restrict_to_side(test, side, axes, arguments)
                paths = self.paths(*restricted)
            except AlwaysRaises as error:
                never.append(error)
                self.limits[f"{test.line}: {_text(test, side)}: {error.told}"] = None
                continue
            except CallSequenceDiverged as error:
                raise CallSequenceDiverged(str(_one_side(test, error))) from error
            except (NoFallback, NeedsRealValues):
                raise
            except (TraceUnsupported, FrozenDimension) as error:
                raise _one_side(test, error) from error
            sides.append(Side(*restricted, paths))
            found += [replace(path, sizes=((test, side == test.test), *path.sizes)) for path in paths]
        if not found:
            raise never[0]
        general = None if isinstance(test, ValueTest) else find_general_side(sides, axes, self._is_right_at)
        return found if general is None else [general]


def _one_side(test: OpenGuard, why: Exception) -> FrozenDimension | TraceUnsupported:
    if isinstance(why, ValueTestRefused):  # the innermost says it
        return why
    if isinstance(test, ValueTest):
        return test.refusal(f"exporting both branches fails: {first_sentence(why)}")
    return FrozenDimension(f"{test.error()} Exporting both branches fails: {first_sentence(why)}")


def _text(test: OpenGuard, side: sympy.Basic) -> str:
    return format_with_names(side, test.names_of) if isinstance(test, ValueTest) else range_text(test.dims, side).removeprefix("only ")


def _is_splittable(found: OpenGuard, axes: SizeDomain) -> bool:
    """Whether both sides of a test can be captured: not of one that says that a number was taken for what it is in the example."""
    return not found.is_of_a_number and (isinstance(found, ValueTest) or set(found.test.free_symbols) <= set(axes.example))


def _ends(test: sympy.Basic, axes: SizeDomain) -> bool:
    """Whether a test and those that come of it are few: those of how many turns a loop has end where the size does."""
    return test not in axes.environment.of_turns or all(axes.candidates(symbol)[-1] < max_traced_size() for symbol in test.free_symbols)


def _constants_accepted(axes: SizeDomain, symbols: Sequence[DimSize], accepted: Sequence[str]) -> Iterator[str]:
    """Yield of the sizes in `accepted` those that Python took as plain numbers, or held to be equal to others.

    Raises:
        FrozenDimension: there is another one.
    """
    environment = axes.environment
    for dim, symbol in symbols:
        became = environment.replace(symbol)
        if became == symbol:
            continue
        line = source_line(environment.replacements_slocs[symbol]) or "a call of PyTorch"
        what = f"the constant {became}" if became.is_number else "equal to another size"
        told = f'"{dim.name}" was asked to be dynamic but is {what} after {line}'
        if dim.name not in accepted:
            raise FrozenDimension(f"{told}. {ADVICE} accept_ranges={quote_names([dim.name])}.")
        yield f"{told}; {ACCEPTED}"
