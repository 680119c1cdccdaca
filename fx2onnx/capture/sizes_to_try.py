"""Sizes at which tests of sizes are tried."""

from __future__ import annotations

from math import isqrt

import sympy

PROBES = (*range(1, 70), 127, 128, 1000, 4097)


def sizes_near(test: sympy.Basic) -> list[int]:
    """Return sizes at which a test may change by the numbers in it: near each of them, their products, quotients and roots."""
    numbers = {abs(int(n)) for n in test.atoms(sympy.Integer)} - {0}
    products = {a * b for a in numbers for b in numbers} | {a // b for a in numbers for b in numbers}
    near = {n + more for n in numbers | products | set(map(isqrt, numbers)) for more in (-1, 0, 1)}
    return sorted(n for n in near if PROBES[0] <= n <= PROBES[-1] and n not in PROBES)
