"""What is said of the number of a turn, held against every turn: numbers that calls take, and tests that Python made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ....build.values import expression
from ...asked_at import source_line
from ...sizes_to_try import PROBES
from ..lines import line_in
from ..notes import Row, alike
from ..refusal import CannotRun
from ..sample import Setting
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
        raise CannotRun(f"the number of the last turn is read after its loop, at {line_in(row.line)}")
    for other, setting in zip(others, settings, strict=True):
        for turns, leaves in ((other.turns, other.leaves), *other.later):
            at = setting | {symbol: turns[symbols[symbol]] for symbol in used}
            for one, found, first in zip(row.leaves, leaves, other.leaves, strict=True):
                is_counted = isinstance(one, sympy.Basic) and bool(one.free_symbols & used)
                if found != (said := one.subs(at) if is_counted else first) and not alike(found, said):
                    raise CannotRun(
                        f"{row.op} takes {found} in one turn and {first} in another at {line_in(row.line)}, which its number does not say"
                    )


def is_counted(leaf: Any, loops: Sequence[Loop]) -> bool:
    """Return whether an argument depends on the number of a turn."""
    return isinstance(leaf, sympy.Basic) and not leaf.free_symbols.isdisjoint({loop.symbol for loop in loops})


def check_tests(environment: ShapeEnv, loops: Sequence[Loop], ranges: Mapping[sympy.Symbol, tuple[int, int]]) -> None:
    """Hold each test of the number of a turn against every turn but the first, at sizes far apart.

    Raises:
        CannotRun: one comes out another way.
    """
    symbols = {loop.symbol: expression(loop.size) for loop in loops}
    for symbol in symbols:
        if environment.replace(symbol) != symbol:
            line = source_line(environment.replacements_slocs[symbol]) or "a call of torch"
            raise CannotRun(f"the number of a turn is taken as {environment.replace(symbol)} at {line}")
    for guard in environment.guards:
        used = [symbol for symbol in symbols if symbol in guard.expr.free_symbols]
        if used and not all(guard.expr.subs(at) == sympy.true for at in _turns_to_try(guard.expr, used, symbols, ranges)):
            raise CannotRun(f"a turn is not like the others after the test at {source_line(guard.sloc) or 'a call of torch'}")


def _turns_to_try(
    test: sympy.Basic, used: Sequence[sympy.Symbol], counts: Mapping[sympy.Symbol, Any], ranges: Mapping[sympy.Symbol, tuple[int, int]]
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
