"""Sizes at which tests of sizes are tried."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

import sympy

PROBES = (*range(1, 70), 127, 128, 1000, 4097)


def sizes_near(test: sympy.Basic) -> list[int]:
    """Return sizes at which a test may change by the numbers in it: near each of them, their products, quotients and roots.

    Where it holds a line in one size against a number, all at which it changes are among them.
    """
    numbers = {abs(int(n)) for n in test.atoms(sympy.Integer)} - {0}
    products = {a * b for a in numbers for b in numbers} | {a // b for a in numbers for b in numbers}
    near = {n + more for n in numbers | products | set(map(isqrt, numbers)) | set(crossings(test)) for more in (-1, 0, 1)}
    return sorted(n for n in near if PROBES[0] <= n <= PROBES[-1] and n not in PROBES)


@lru_cache(maxsize=1 << 14)
def is_false(test: sympy.Basic, symbol: sympy.Symbol, size: int) -> bool:
    """Return whether a test comes out false at a size; every range of sizes asks that of the same tests, and sympy takes its time."""
    return test.subs(symbol, size) == sympy.false


def crossings(test: sympy.Basic) -> list[int]:
    """Return the whole sizes next to where a comparison of a line in one size changes; none of any other test."""
    if not isinstance(test, sympy.Rel) or len(test.free_symbols) != 1:
        return []
    (symbol,), line = test.free_symbols, test.lhs - test.rhs
    slope = line.diff(symbol)
    if not slope.is_number or slope == 0:
        return []
    at = -line.subs(symbol, 0) / slope
    return [int(sympy.floor(at)), int(sympy.ceiling(at))]
