"""Decide whether ranges of sizes imply a guard: interval arithmetic proves it, or a counterexample refutes it."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isqrt, lcm

import sympy

from ..compat.symbols import FloorDiv, Mod, PythonMod, ValueRangeError, ValueRanges, bound_sympy
from ..ir.expressions import evaluate_at
from .dims import DynamicDim
from .witnesses import boundaries

MOST = sys.maxsize  # the largest size of an axis
FAR = MOST**4  # larger than any expression of sizes
BOXES = 400  # ranges of sizes to analyse before a guard counts as undecided
CORNERS = 3  # the most axes for which all corners of a box are tried
LARGEST_STEP = 128  # the largest divisor for which every remainder is analysed
DIVISIONS = (FloorDiv, Mod, PythonMod)
NOT_ANALYSED = (ValueRangeError, NotImplementedError, AttributeError, KeyError, TypeError, AssertionError, ZeroDivisionError, OverflowError)

Range = tuple[int, int]
Ranges = Mapping[sympy.Symbol, Range]
SizeOf = dict[sympy.Symbol, int]


@dataclass(frozen=True)
class Decision:
    """Whether a guard is implied, and otherwise a counterexample; None if it is undecided."""

    implied: bool
    counterexample: Mapping[sympy.Symbol, int] | None = None


def range_of(dim: DynamicDim) -> Range:
    """Return the range of an axis; guards are not analysed for size 0."""
    return max(1, dim.least), dim.most if isinstance(dim.most, int) else MOST


def ranges_of_root(dim: DynamicDim, size: sympy.Expr) -> dict[sympy.Symbol, Range]:
    """Return the ranges of the symbols in the size of an axis, such as that of `k` for an axis of size `2*k`."""
    slopes = [size.diff(symbol) for symbol in size.free_symbols]
    if len(slopes) != 1 or not (slopes[0].is_Integer and slopes[0] > 0):
        return dict.fromkeys(size.free_symbols, (1, MOST))
    (symbol,), (slope,), (least, most) = size.free_symbols, slopes, range_of(dim)
    offset = size.subs(symbol, 0)
    return {symbol: (max(1, -int((offset - least) // slope)), int((most - offset) // slope))}


def is_implied(
    guard: sympy.Basic, ranges: Ranges, given: Iterable[sympy.Basic] = (), tried: Iterable[SizeOf] = (), boxes: int = BOXES
) -> bool:
    """Return whether a guard provably holds at all sizes in these ranges that satisfy the given tests; False if undecided."""
    return decide(guard, ranges, given, tried, boxes).implied


def or_is_small(test: sympy.Basic, is_of_a_number: bool = False) -> sympy.Basic:
    """Return a weaker test that also holds if a compared size is below 2."""
    compares = isinstance(test, sympy.Rel) and not is_of_a_number
    is_difference = isinstance(test, (sympy.Ge, sympy.Lt)) and test.rhs == 0  # n - 3 >= 0 compares a difference, not a size
    sides = [side for side in test.args if side.free_symbols] if compares else test.free_symbols
    return sympy.Or(test, *(sympy.And(side >= 0, side <= 1) if is_difference else side <= 1 for side in sides))


def decide(
    guard: sympy.Basic, ranges: Ranges, given: Iterable[sympy.Basic] = (), tried: Iterable[SizeOf] = (), boxes: int = BOXES
) -> Decision:
    """Decide whether a guard holds at all sizes in these ranges that satisfy the given tests.

    Args:
        given: tests that hold; those with other symbols are ignored.
        tried: possible counterexamples, tried before the ranges are split.
        boxes: the number of ranges to look at before the guard counts as undecided.
    """
    known = (test for test in given if test.free_symbols <= set(ranges))
    goal = sympy.Or(*sympy.Or.make_args(guard), *map(sympy.Not, known))
    if is_proved(goal, ranges):
        return Decision(True)
    for sizes in tried:
        if evaluate_at(goal, sizes) != sympy.true:
            return Decision(False, sizes)
    within = tuple(sorted(((symbol, ranges[symbol]) for symbol in goal.free_symbols if symbol in ranges), key=str))
    return _decided_by_rests(goal, within) or _decide(goal, within, boxes)


def is_proved(goal: sympy.Basic, ranges: Ranges) -> bool:
    """Return whether interval arithmetic proves a test without splitting a range."""
    return _is_proved_at_once(goal, ranges) or _is_proved_of_any(goal, ranges)


@lru_cache(maxsize=1 << 12)
def _decide(goal: sympy.Basic, ranges: tuple[tuple[sympy.Symbol, Range], ...], most: int = BOXES) -> Decision:
    boxes: deque[Ranges] = deque([dict(ranges)])
    if {symbol for symbol, _ in ranges} != goal.free_symbols or any(least > most for _, (least, most) in ranges):
        return Decision(any(least > most for _, (least, most) in ranges))
    for _ in range(most):
        if not boxes:
            return Decision(True)
        box = boxes.popleft()
        if _is_proved_at_once(goal, box):
            continue
        for sizes in _corners(box):
            if evaluate_at(goal, sizes) != sympy.true:
                return Decision(False, sizes)
        boxes.extend(_halves(goal, box))
    return Decision(not boxes)


@lru_cache(maxsize=1 << 12)
def _decided_by_rests(goal: sympy.Basic, ranges: tuple[tuple[sympy.Symbol, Range], ...]) -> Decision | None:
    """Decide a test of one size with constant divisors for each remainder, which removes the divisions. None if that is inconclusive."""
    steps = {int(part.args[1]) for part in goal.atoms(*DIVISIONS) if part.args[1].is_Integer}
    step = lcm(*steps)
    if len(goal.free_symbols) != 1 or len(ranges) != 1 or not goal.has(*DIVISIONS) or step > LARGEST_STEP:
        return None
    ((symbol, (least, most)),) = ranges
    times = sympy.Dummy("times", integer=True, nonnegative=True)
    for rest in range(step):
        ends = max(0, -((rest - least) // step)), (most - rest) // step
        if ends[0] > ends[1]:
            continue
        reduced = goal.subs(symbol, step * times + rest).replace(_is_division, _reduce_quotient)
        found = _decide(reduced, ((times, ends),)) if reduced.free_symbols else Decision(reduced == sympy.true, {times: ends[0]})
        if not found.implied:
            return Decision(False, {symbol: step * found.counterexample[times] + rest}) if found.counterexample else None
    return Decision(True)


def _is_division(part: sympy.Basic) -> bool:
    return isinstance(part, DIVISIONS)


def _reduce_quotient(part: sympy.Basic) -> sympy.Expr:
    """Return a quotient or remainder without the multiples of the divisor in the dividend."""
    over, by = map(sympy.expand, part.args)
    symbol = next(iter(over.free_symbols | by.free_symbols), None)
    if symbol is None or not by.is_polynomial(symbol) or not over.is_polynomial(symbol):
        return part
    if by.is_number:
        many = sum(term / by for term in sympy.Add.make_args(over) if (term / by).is_integer)
    else:
        many = sympy.floor(over.coeff(symbol) / by.coeff(symbol)) if over.diff(symbol).is_number and by.diff(symbol).is_number else 0
    rest = part.func(sympy.expand(over - many * by), by)
    return many + rest if isinstance(part, FloorDiv) else rest


def _is_proved_at_once(goal: sympy.Basic, box: Ranges) -> bool:
    """Whether interval arithmetic proves a test in a box of sizes."""
    goal = evaluate_at(goal, {symbol: least for symbol, (least, most) in box.items() if least == most})
    if goal in (sympy.true, sympy.false, sympy.nan):
        return bool(goal == sympy.true)
    try:
        return bound_sympy(goal, {symbol: ValueRanges(*ends) for symbol, ends in box.items()}).lower == sympy.true
    except NOT_ANALYSED:  # torch does not analyse this operator
        return False


def _is_proved_of_any(goal: sympy.Basic, ranges: Ranges) -> bool:
    """Whether a test holds for all values of the expressions that its comparisons share, as in `n % 4 > 0 or n % 4 <= 1`."""
    sides = Counter(side for test in goal.atoms(sympy.Rel) for side in test.args if side.free_symbols and side.is_integer)
    shared = {side: sympy.Dummy(integer=True) for side, times in sides.items() if times > 1 and not side.is_Symbol}
    if not shared:
        return False
    of_shared = {symbol: ends for side, symbol in shared.items() if (ends := _ends(side, ranges)) is not None}
    return len(of_shared) == len(shared) and decide(goal.xreplace(shared), {**ranges, **of_shared}).implied


def _ends(side: sympy.Expr, ranges: Ranges) -> Range | None:
    """The bounds of an expression, limited to `FAR`."""
    try:
        found = bound_sympy(side, {symbol: ValueRanges(*ends) for symbol, ends in ranges.items()})
        return int(max(found.lower, -FAR)), int(min(found.upper, FAR))
    except NOT_ANALYSED:
        return None


def _corners(box: Ranges) -> Iterator[SizeOf]:
    ends = list(box.values())
    for sizes in product(*ends) if len(ends) <= CORNERS else zip(*ends, strict=True):
        yield dict(zip(box, sizes, strict=True))


def _halves(goal: sympy.Basic, box: Ranges) -> list[Ranges]:
    """Split a box across its longest axis, at a boundary of a comparison if there is one; empty for a single point."""
    longer = {symbol: ends for symbol, ends in box.items() if ends[0] < ends[1]}
    if not longer:
        return []
    symbol, (least, most) = max(longer.items(), key=lambda pair: _length(*pair[1]))
    cut = next((at for at in _cuts(goal, symbol) if least <= at < most), _middle(least, most))
    return [{**box, symbol: (least, cut)}, {**box, symbol: (cut + 1, most)}]


def _length(least: int, most: int) -> float:
    return most / least if least > 0 else float(most - least + 1)


def _middle(least: int, most: int) -> int:
    """Where to split a range: at the geometric mean, or at 0 if it extends below."""
    if least > 0:
        return min(isqrt(least * most), most - 1)
    if most < 0:
        return (least + most) // 2
    return -1 if least < 0 else 0


@lru_cache(maxsize=1 << 12)
def _cuts(goal: sympy.Basic, symbol: sympy.Symbol) -> tuple[int, ...]:
    """The boundaries of comparisons that contain only this size."""
    alone = (test for test in goal.atoms(sympy.Rel) if test.free_symbols == {symbol})
    return tuple(sorted({at for test in alone for at in boundaries(test)}))
