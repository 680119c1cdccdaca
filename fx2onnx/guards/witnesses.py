"""Sizes at which guards are evaluated."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise, product
from math import isqrt

import sympy

from ..compat.symbols import Mod, PythonMod
from ..ir.expressions import evaluate_at
from .dims import DynamicDim

DimOf = dict[sympy.Symbol, DynamicDim]
SizeOf = dict[sympy.Symbol, int]

SAMPLE_SIZES = (*range(1, 70), 127, 128, 1000, 4097)
FAR_SIZE = 1_000_003  # larger than any size that is run
LARGEST_RUN = 256  # size at which guards of libraries are run
MULTIPLES = 12  # multiples of a modulus to try
POWERS = tuple(2**exponent for exponent in range(63))
FEW_PROBES = (1, 2, 3, 5, 64)  # for each of several axes


def witness_sizes(dims: DimOf, test: sympy.Basic) -> Iterator[SizeOf]:
    """Yield sizes at which to evaluate a test, limited in number."""
    probes = (*SAMPLE_SIZES, *sizes_near(test, besides=SAMPLE_SIZES)) if len(dims) == 1 else FEW_PROBES
    each = (among(dim, probes) for dim in dims.values())
    yield from (dict(zip(dims, sizes, strict=True)) for sizes in product(*each))
    if len(dims) > 1:
        alike = (n for n in sizes_near(test) if all(dim.least <= n <= (dim.most or n) for dim in dims.values()))
        yield from (dict.fromkeys(dims, n) for n in alike)
        yield from (sizes for symbol in dims for sizes in _where_one_changes_it(symbol, dims, test))


def _where_one_changes_it(symbol: sympy.Symbol, dims: DimOf, test: sympy.Basic) -> Iterator[SizeOf]:
    """Yield sizes of one axis at which a test may change, with the others at a few sizes."""
    for size in FEW_PROBES:
        others = {other: max(dim.least, min(size, dim.most or size)) for other, dim in dims.items() if other != symbol}
        yield from ({symbol: n, **others} for n in among(dims[symbol], sizes_near(test.subs(others))))


def among(dim: DynamicDim, sizes: Iterable[int]) -> list[int]:
    """Return the sizes that an axis may have."""
    return [n for n in sizes if dim.least <= n <= (dim.most or n)]


def sizes_near(test: sympy.Basic, besides: Collection[int] = ()) -> list[int]:
    """Return sizes at which a test may change according to its numbers: near these, their products, quotients and roots.

    For a comparison of a linear expression of one size, all such sizes are included. `besides` are sizes tried in any case.
    """
    numbers = {abs(int(n)) for n in test.atoms(sympy.Integer)} - {0}
    products = {a * b for a in numbers for b in numbers} | {a // b for a in numbers for b in numbers}
    factors = {abs(float(n)) for n in test.atoms(sympy.Float, sympy.Rational) if not n.is_Integer} - {0.0}
    products |= {int(made) for a in numbers for b in factors for made in (a * b, a / b)}
    parts = {int(n.args[1]) for n in test.atoms(Mod, PythonMod) if n.args[1].is_Integer}
    products |= {size * many for size in parts for many in range(1, MULTIPLES)}
    near = {n + more for n in numbers | products | set(map(isqrt, numbers)) | set(boundaries(test)) for more in (-1, 0, 1)}
    return sorted(n for n in near if SAMPLE_SIZES[0] <= n <= POWERS[-1] and n not in besides)


@lru_cache(maxsize=1 << 14)
def is_false(test: sympy.Basic, symbol: sympy.Symbol, size: int) -> bool:
    """Return whether a test is false at a size; cached because many ranges evaluate the same tests."""
    return evaluate_at(test, {symbol: size}) == sympy.false


def fails(test: sympy.Basic, sizes: SizeOf) -> bool:
    """Return whether a test is false at these sizes; False if it contains other symbols."""
    if len(test.free_symbols) == 1:
        (symbol,) = test.free_symbols
        return symbol in sizes and is_false(test, symbol, sizes[symbol])
    return bool(evaluate_at(test, sizes) == sympy.false)


@lru_cache(maxsize=1 << 12)
def boundaries(test: sympy.Basic) -> tuple[int, ...]:
    """Return the sizes next to which both sides of a comparison of one size change order; empty for other tests.

    The result is complete if the difference of the sides is linear, and otherwise if powers of two separate all changes.
    """
    if not isinstance(test, sympy.Rel) or len(test.free_symbols) != 1:
        return ()
    (symbol,), difference = test.free_symbols, test.lhs - test.rhs
    slope = difference.diff(symbol) if difference.is_polynomial(symbol) else symbol
    if slope.is_number and slope != 0:
        at = -difference.subs(symbol, 0) / slope
        return tuple(dict.fromkeys((int(sympy.floor(at)), int(sympy.ceiling(at)))))

    @cache
    def order(size: int) -> tuple[bool, bool]:
        found = evaluate_at(difference, {symbol: size})
        if found is sympy.nan:  # such as the remainder of 0
            return False, False
        return bool(found > 0), bool(found >= 0)

    changes = ((low, high) for low, high in pairwise(POWERS) if order(low) != order(high))
    return tuple(dict.fromkeys(at for low, high in changes for at in _changes(order, low, high)))


def _changes(order: Callable[[int], tuple[bool, bool]], low: int, high: int) -> Iterator[int]:
    """Yield the first size whose order differs from that of `low`, and the first with the order of `high`."""
    one, other = order(low), order(high)
    yield low + bisect_left(range(low, high), True, key=lambda size: order(size) != one)
    yield low + bisect_left(range(low, high), True, key=lambda size: order(size) == other)
