"""Check expressions and guards of the iteration number in every iteration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import sympy

from ..compat.shape_env import ShapeEnv
from ..compat.symbols import FloorDiv, Max
from ..guards.decisions import MOST, Range, is_implied
from ..guards.guard_origin import source_line
from ..guards.witnesses import SAMPLE_SIZES
from ..ir.expressions import expression
from ..trace.events import OpEvent, Ref, Trace, alike
from ..trace.refusal import TestInLoop, TraceUnsupported
from ..trace.size_domain import SizeAssignment, max_traced_size
from ..trace.source_location import CodeLocation, line_in
from .iteration_shapes import Shape
from .loop import STACKED, Loop

MOST_SHAPES = 4  # shapes of the iterations of a loop
MOST_NESTED = 8  # loops that test values
SIZES = (1, 2, 3, 5, 64, 1000, 4097)


def check_leaves(row: OpEvent, others: Sequence[OpEvent], settings: Sequence[SizeAssignment], loops: Sequence[Loop]) -> None:
    """Check the numbers that a call has in each iteration of other runs against the expressions of the symbolic run.

    Args:
        settings: the sizes of the other runs.

    Raises:
        TraceUnsupported: If they differ.
    """
    symbols = {loop.symbol: loop.number for loop in loops}
    used = {symbol for leaf in row.leaves if isinstance(leaf, sympy.Basic) for symbol in leaf.free_symbols} & symbols.keys()
    if any(symbols[symbol] not in row.turns for symbol in used):
        raise TraceUnsupported(f"the loop variable is read after its loop, at {line_in(row.line)}")
    for other, setting in zip(others, settings, strict=True):
        for turns, leaves in ((other.turns, other.leaves), *other.later):
            at = setting | {symbol: turns[symbols[symbol]] for symbol in used}
            for one, found, first in zip(row.leaves, leaves, other.leaves, strict=True):
                is_counted = isinstance(one, sympy.Basic) and bool(one.free_symbols & used)
                if found != (said := (at[one] if one in at else one.subs(at)) if is_counted else first) and not alike(found, said):
                    raise TraceUnsupported(
                        f"{row.op} takes {found} in one iteration and {first} in another at {line_in(row.line)}, "
                        "which the loop variable does not explain"
                    )


def is_counted(leaf: Any, loops: Sequence[Loop]) -> bool:
    """Return whether an argument depends on an iteration number."""
    return isinstance(leaf, sympy.Basic) and not leaf.free_symbols.isdisjoint({loop.symbol for loop in loops})


def check_tests(environment: ShapeEnv, loops: Sequence[Loop], ranges: Mapping[sympy.Symbol, Range]) -> None:
    """Check each guard on an iteration number in every iteration but the first, at widely spaced sizes.

    Raises:
        TraceUnsupported: If one has another outcome.
    """
    symbols = {loop.symbol: expression(loop.size) for loop in loops if loop.size is not None}
    for symbol in symbols:
        if environment.replace(symbol) != symbol:
            line = source_line(environment.replacements_slocs[symbol]) or "a call of PyTorch"
            raise TraceUnsupported(f"the loop variable is specialised to {environment.replace(symbol)} at {line}")
    for guard in environment.guards:
        used = [symbol for symbol in symbols if symbol in guard.expr.free_symbols]
        if used and not _holds_in_every_turn(guard.expr, used, symbols, ranges):
            raise TraceUnsupported(
                f"the iterations of a loop differ after the condition at {source_line(guard.sloc) or 'a call of PyTorch'}"
            )


def _holds_in_every_turn(
    test: sympy.Basic, used: Sequence[sympy.Symbol], counts: Mapping[sympy.Symbol, Any], ranges: Mapping[sympy.Symbol, Range]
) -> bool:
    """Return whether a test provably holds in each iteration but the first."""
    if not all(test.subs(at) == sympy.true for at in _turns_to_try(test, used, counts, ranges)):
        return False
    ends = {symbol: (least, most if most < max_traced_size() else MOST) for symbol, (least, most) in ranges.items()}
    ends |= dict.fromkeys(used, (1, MOST))
    known: dict[sympy.Symbol, sympy.Expr] = {}
    for turn in used:
        for size, (made, of) in _size_by_turn(turn, sympy.sympify(counts[turn])).items():
            if size not in known:
                known[size] = made
                ends |= of
    given = [sympy.Lt(turn, sympy.sympify(counts[turn])) for turn in used]
    return is_implied(_normalise_comparison(test, known), ends, [_normalise_comparison(one, known) for one in given])


def _normalise_comparison(test: sympy.Basic, known: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Basic:
    """Return a test with sizes in terms of iterations, and with 0 on one side of each comparison."""
    expanded = test.subs(known)
    return expanded.replace(lambda part: isinstance(part, sympy.Rel), lambda part: part.func(sympy.expand(part.lhs - part.rhs), 0))


def _size_by_turn(turn: sympy.Symbol, count: sympy.Expr) -> dict[sympy.Symbol, tuple[sympy.Expr, dict[sympy.Symbol, Range]]]:
    """Return a size in terms of an iteration: a loop along an axis or its chunks has this iteration and `further` ones.

    Returns:
        The expression and the ranges of its symbols; empty if the number of iterations has another form.
    """
    further, rest = (sympy.Dummy(name, integer=True, nonnegative=True) for name in ("further", "rest"))
    turns = turn + 1 + further
    if isinstance(count, Max) and 0 in count.args:  # there is at least this iteration
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
) -> Iterator[SizeAssignment]:
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
    return sorted({number for number in (*SAMPLE_SIZES, *named, turns - 2, turns - 1) if 1 <= number < turns})


def shapes_of(
    explored: Callable[[Mapping[CodeLocation, tuple[Shape, ...]]], Mapping[CodeLocation, Sequence[Shape]]],
) -> dict[CodeLocation, tuple[Shape, ...]]:
    """Return the possible shapes of the iterations of each loop, from runs in which all iterations have one shape.

    Args:
        explored: returns the shapes of the iterations in a run with the given outcomes.

    Raises:
        TraceUnsupported: If there are too many.
    """
    first = {place: (shape,) for place, (shape, *_) in _ways(explored, {}).items()}
    found: dict[CodeLocation, tuple[Shape, ...]] = {}
    for place, (start,) in first.items():
        known, todo = {start}, [(*start.answers[:i], True) for i, answer in enumerate(start.answers) if not answer]
        while todo:
            given = todo.pop()
            shape = _ways(explored, first | {place: (Shape(given),)})[place][0]
            todo += [(*shape.answers[:i], True) for i in range(len(given), len(shape.answers))]
            known.add(shape)
            if len(known) > MOST_SHAPES:
                raise TraceUnsupported(
                    f"the iterations of the loop at {place[0].co_filename}:{place[0].co_firstlineno} take more than {MOST_SHAPES} paths"
                )
        found[place] = (*sorted((shape for shape in known if not shape.leaves), key=str), *(shape for shape in known if shape.leaves))
    return found


def _ways(explored: Callable[..., Any], shapes: Mapping[CodeLocation, tuple[Shape, ...]]) -> dict[CodeLocation, Sequence[Shape]]:
    """The shapes of a run, including loops that test values in this run only."""
    for _ in range(MOST_NESTED):
        try:
            found: dict[CodeLocation, Sequence[Shape]] = explored(shapes)
            return found
        except TestInLoop as error:
            shapes = {**shapes, error.place: (Shape(),)}
    raise TraceUnsupported(f"more than {MOST_NESTED} loops test values")


def check_after(usual: Trace, other: Trace) -> None:
    """Check that a run that leaves a loop earlier or later makes the same calls outside loops that values end.

    Raises:
        TraceUnsupported: If they differ.
    """
    loops, again = _loops_outside(usual), _loops_outside(other)
    if len(loops) != len(again):
        raise TraceUnsupported(f"another loop follows the loop at {loops[0].line} for some values only")
    pairs = list(zip(loops, again, strict=True))
    line = next(loop.line for loop in usual.loops if loop.may_end_early)
    rows, others = _rows_outside(usual), _rows_outside(other)
    if [usual.rows[row].kind for row in rows] != [other.rows[row].kind for row in others]:
        raise TraceUnsupported(f"the loop at {line} cannot be exported as a Loop: the operators called after it differ between runs")
    places = dict(zip(rows, others, strict=True))
    leaves = [pair for row, same in places.items() for pair in zip(usual.rows[row].leaves, other.rows[same].leaves, strict=True)]
    for one, found in (*leaves, *zip(usual.returned, other.returned, strict=False)):
        if not _is_same(one, found, places, pairs):
            raise TraceUnsupported(f"the loop at {line} cannot be exported as a Loop: what is read after it differs between runs")
    if usual.spec != other.spec or len(usual.returned) != len(other.returned):
        raise TraceUnsupported(f"the loop at {line} cannot be exported as a Loop: what the model returns differs between runs")


def _loops_outside(trace: Trace) -> list[Loop]:
    """The loops that are not inside a loop that a value ends."""
    early = [loop for loop in trace.loops if loop.may_end_early or loop.is_cut]
    return [loop for loop in trace.loops if not any(one is not loop and one.begin <= loop.begin and loop.end <= one.end for one in early)]


def _rows_outside(trace: Trace) -> list[int]:
    """The calls outside loops that values end."""
    inside = {
        row
        for loop in trace.loops
        if loop.may_end_early or loop.is_cut
        for row in range((loop.starts or [loop.end])[0], loop.end + loop.is_while)
    }
    return [row for row in range(len(trace.rows)) if row not in inside]


def _is_same(one: Any, other: Any, places: Mapping[int, int], loops: Sequence[tuple[Loop, Loop]]) -> bool:
    """Whether two arguments are the same: created at the same position, or in the same variable after a loop."""
    if not isinstance(one, Ref) or not isinstance(other, Ref):
        return not isinstance(one, Ref) and not isinstance(other, Ref) and alike(one, other)
    if one.kind in STACKED and (one.kind, one.turns) == (other.kind, other.turns):
        number, listed = one.turns[0]
        values, others = (loop.listed[listed] for loop in loops[number])
        return values.keys() == others.keys() and all(_is_same(values[at], others[at], places, loops) for at in values)
    if one.kind == "row" and int(one.key) in places:
        if one._replace(key=places[int(one.key)]) == other:
            return True
    elif one.kind != "row" and one == other:
        return True
    return any(loop.last.get(name) == one and again.last.get(name) == other for loop, again in loops for name in loop.last)
