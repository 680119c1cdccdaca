"""What is said of the number of a turn, held against every turn: numbers that calls take, and tests that Python made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv, Max

from ....build.values import expression
from ...asked_at import source_line
from ...guards import MOST, Range, is_implied
from ...sizes_to_try import PROBES
from ..lines import line_in
from ..notes import Row, alike
from ..refusal import CannotRun
from ..sample import Setting, longest
from .turns import Loop

SIZES = (1, 2, 3, 5, 64, 1000, 4097)


def check_leaves(row: Row, others: Sequence[Row], settings: Sequence[Setting], loops: Sequence[Loop]) -> None:
    """Hold the numbers that a call takes in each turn of other runs against what the run with symbols says of them.

    Args:
        settings: of the other runs.

    Raises:
        CannotRun: they are others.
    """
    symbols = {loop.symbol: loop.number for loop in loops}
    used = {symbol for leaf in row.leaves if isinstance(leaf, sympy.Basic) for symbol in leaf.free_symbols} & symbols.keys()
    if any(symbols[symbol] not in row.turns for symbol in used):
        raise CannotRun(f"the loop variable is read after its loop, at {line_in(row.line)}")
    for other, setting in zip(others, settings, strict=True):
        for turns, leaves in ((other.turns, other.leaves), *other.later):
            at = setting | {symbol: turns[symbols[symbol]] for symbol in used}
            for one, found, first in zip(row.leaves, leaves, other.leaves, strict=True):
                is_counted = isinstance(one, sympy.Basic) and bool(one.free_symbols & used)
                if found != (said := one.subs(at) if is_counted else first) and not alike(found, said):
                    raise CannotRun(
                        f"{row.op} takes {found} in one iteration and {first} in another at {line_in(row.line)}, "
                        "which the loop variable does not explain"
                    )


def is_counted(leaf: Any, loops: Sequence[Loop]) -> bool:
    """Return whether an argument depends on the number of a turn."""
    return isinstance(leaf, sympy.Basic) and not leaf.free_symbols.isdisjoint({loop.symbol for loop in loops})


def check_tests(environment: ShapeEnv, loops: Sequence[Loop], ranges: Mapping[sympy.Symbol, Range]) -> None:
    """Hold each test of the number of a turn against every turn but the first, at sizes far apart.

    Raises:
        CannotRun: one comes out another way.
    """
    symbols = {loop.symbol: expression(loop.size) for loop in loops}
    for symbol in symbols:
        if environment.replace(symbol) != symbol:
            line = source_line(environment.replacements_slocs[symbol]) or "a call of PyTorch"
            raise CannotRun(f"the loop variable is specialised to {environment.replace(symbol)} at {line}")
    for guard in environment.guards:
        used = [symbol for symbol in symbols if symbol in guard.expr.free_symbols]
        if used and not _holds_in_every_turn(guard.expr, used, symbols, ranges):
            raise CannotRun(f"the iterations of a loop differ after the condition at {source_line(guard.sloc) or 'a call of PyTorch'}")


def _holds_in_every_turn(
    test: sympy.Basic, used: Sequence[sympy.Symbol], counts: Mapping[sympy.Symbol, Any], ranges: Mapping[sympy.Symbol, Range]
) -> bool:
    """Return whether a test is proved to hold in each turn but the first."""
    if not all(test.subs(at) == sympy.true for at in _turns_to_try(test, used, counts, ranges)):
        return False
    ends = {symbol: (least, most if most < longest() else MOST) for symbol, (least, most) in ranges.items()}
    ends |= dict.fromkeys(used, (1, MOST))
    known: dict[sympy.Symbol, sympy.Expr] = {}
    for turn in used:
        for size, (made, of) in _size_by_turn(turn, sympy.sympify(counts[turn])).items():
            if size not in known:
                known[size] = made
                ends |= of
    given = [sympy.Lt(turn, sympy.sympify(counts[turn])) for turn in used]
    return is_implied(_by_turns(test, known), ends, [_by_turns(one, known) for one in given])


def _by_turns(test: sympy.Basic, known: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Basic:
    """Return a test with sizes as turns say them, one side of each comparison 0."""
    told = test.subs(known)
    return told.replace(lambda part: isinstance(part, sympy.Rel), lambda part: part.func(sympy.expand(part.lhs - part.rhs), 0))


def _size_by_turn(turn: sympy.Symbol, count: sympy.Expr) -> dict[sympy.Symbol, tuple[sympy.Expr, dict[sympy.Symbol, Range]]]:
    """Return a size as what is known of it in a turn: a loop along an axis, or its parts, has this turn and `further` ones.

    Returns:
        The expression, and the ranges of the symbols in it; nothing where the number of turns is said otherwise.
    """
    further, rest = (sympy.Dummy(name, integer=True, nonnegative=True) for name in ("further", "rest"))
    turns = turn + 1 + further
    if isinstance(count, Max) and 0 in count.args:  # there is this turn
        count = Max(*(one for one in count.args if one != 0))
    part = next(iter(count.atoms(FloorDiv)), None)
    whole, step = (count, 1) if part is None else part.args
    if part is not None:
        turns -= count - part
    symbol = next(iter(whole.free_symbols), None)
    if (
        symbol is None
        or whole.diff(symbol) != 1
        or not sympy.sympify(step).is_Integer
        or (part is not None and (count - part).free_symbols)
    ):
        return {}
    size = step * turns + rest - whole.subs(symbol, 0) if part is not None else turns - whole.subs(symbol, 0)
    return {symbol: (sympy.expand(size), {further: (0, MOST), rest: (0, int(step) - 1)})}


def _turns_to_try(
    test: sympy.Basic, used: Sequence[sympy.Symbol], counts: Mapping[sympy.Symbol, Any], ranges: Mapping[sympy.Symbol, Range]
) -> Iterator[Setting]:
    constants = {abs(int(number)) for number in test.atoms(sympy.Integer)} | {1}
    named = {one // other + more for one in constants for other in constants if other for more in (-1, 0, 1)}
    sizes = [
        symbol
        for symbol in ranges
        if symbol in test.free_symbols or any(symbol in sympy.sympify(counts[turn]).free_symbols for turn in used)
    ]
    probes = sorted({*SIZES, *(number + 3 for number in named if number > 0)})
    for values in product(*([n for n in probes if ranges[size][0] <= n <= ranges[size][1]] for size in sizes)):
        setting = dict(zip(sizes, values, strict=True))
        ends = [int(sympy.sympify(counts[turn]).subs(setting)) for turn in used]
        for numbers in product(*(_numbers(end, named) for end in ends)):
            yield setting | dict(zip(used, numbers, strict=True))


def _numbers(turns: int, named: Collection[int]) -> list[int]:
    return sorted({number for number in (*PROBES, *named, turns - 2, turns - 1) if 1 <= number < turns})
