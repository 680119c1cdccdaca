"""Expressions of sizes compared with the integers that the concrete runs had in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy

from ..compat.symbols import Max, Min
from ..guards.decisions import is_implied
from ..guards.witnesses import SAMPLE_SIZES
from ..ir.expressions import Size, evaluate_at
from ..trace.size_domain import SizeAssignment, SizeDomain
from .sizes import plain

MOST_OPERATIONS = 12  # of a minimum or maximum for which a proof is tried
FEW_BOXES = 8  # ranges of sizes into which a proof may cut those of a shorter expression


class SizeChecks:
    """Compares expressions of sizes with what each run had.

    Args:
        settings: the sizes of each run, those of the symbolic run first.

    Attributes:
        decided: the value of each fresh symbol in each run.
    """

    def __init__(self, settings: Sequence[SizeAssignment], axes: SizeDomain) -> None:
        self.settings, self._axes = settings, axes
        self.decided: dict[sympy.Symbol, tuple[int, ...]] = {}
        self._at_settings: dict[sympy.Basic, tuple[sympy.Basic, ...]] = {}
        self._matched: dict[tuple[int, ...], dict[sympy.Basic, None]] = {}
        self._simplified: dict[sympy.Basic, Size] = {}

    def matches(self, size: Size, values: tuple[int, ...]) -> bool:
        """Return whether a size is these integers, one for each run."""
        if isinstance(size, int):
            return set(values) == {size}
        if not size.free_symbols <= {*self.settings[0], *self.decided}:  # a symbol inside of an operator
            return False
        is_alike = self._values(size) == values
        if is_alike and self.decided.keys().isdisjoint(size.free_symbols):
            self._matched.setdefault(values, {})[size] = None
        return is_alike

    def find(self, values: tuple[int, ...]) -> Size | None:
        """Return the constant, or the one size of an earlier tensor, that is these integers; None if there is none, or several.

        Kernels of autograd pass on the numbers of sizes that tensors had in the forward pass.
        """
        if len(set(values)) == 1:
            return values[0]
        symbols = [symbol for symbol in self.settings[0] if tuple(setting[symbol] for setting in self.settings) == values]
        found = {**dict.fromkeys(symbols), **self._matched.get(values, {})}
        return next(iter(found)) if len(found) == 1 else None

    def settle(self, size: Size, values: tuple[int, ...]) -> Size:
        """Return a size, but as a constant if it has the number of an iteration in it and is the same in all iterations of all runs."""
        is_of_iteration = not isinstance(size, int) and not size.free_symbols <= {*self.settings[0], *self.decided}
        return values[0] if is_of_iteration and len(set(values)) == 1 else size

    def matches_further(self, expression: sympy.Basic, values: Sequence[object]) -> bool:
        """Return whether an expression of the symbolic run, which is no constant, is these numbers in the other runs."""
        found = self._values(expression)[1:]
        return bool(expression.free_symbols) and all(one.is_number and one == value for one, value in zip(found, values, strict=True))

    def simplify(self, size: Size) -> Size:
        """Return what a size with minima, maxima or divisions is proved to be, as a constant or a line where it is one."""
        if isinstance(size, int) or not size.atoms(sympy.core.function.Application) or not size.free_symbols <= {*self.settings[0]}:
            return size
        if size not in self._simplified:
            shorter = size.replace(_is_extremum, self._decide_extremum) if size.atoms(Min, Max) else size
            self._simplified[size] = plain(next((one for one in self._candidates(shorter) if self._holds(sympy.Eq(shorter, one))), shorter))
        return self._simplified[size]

    def _candidates(self, size: sympy.Expr) -> Iterator[sympy.Expr]:
        """Yield the constant, and the sum of one size and a constant, that a size is in all runs."""
        values = self._values(size)
        if len(set(values)) == 1:
            yield values[0]
        for symbol in sorted(size.free_symbols, key=str):
            offsets = {value - setting[symbol] for value, setting in zip(values, self.settings, strict=True)}
            if len(offsets) == 1:
                yield symbol + offsets.pop()

    def _decide_extremum(self, extremum: sympy.Expr) -> sympy.Expr:
        if extremum.count_ops() > MOST_OPERATIONS:
            return extremum
        compare = sympy.Le if isinstance(extremum, Min) else sympy.Ge
        shown = (one for one in extremum.args if self._values(one) == self._values(extremum))
        return next((one for one in shown if all(self._holds(compare(one, other)) for other in extremum.args)), extremum)

    def _holds(self, test: sympy.Basic) -> bool:
        tried = [dict.fromkeys(test.free_symbols, size) for size in SAMPLE_SIZES]
        return test == sympy.true or is_implied(test, self._axes.ranges_of(test), self._axes.conditions, tried, FEW_BOXES)

    def _values(self, expression: sympy.Basic) -> tuple[sympy.Basic, ...]:
        """The value of an expression in each run."""
        if expression not in self._at_settings:
            decided = [(symbol, numbers) for symbol, numbers in self.decided.items() if symbol in expression.free_symbols]
            settings = [{**setting, **{symbol: numbers[at] for symbol, numbers in decided}} for at, setting in enumerate(self.settings)]
            self._at_settings[expression] = tuple(evaluate_at(expression, setting) for setting in settings)
        return self._at_settings[expression]


def _is_extremum(part: sympy.Basic) -> bool:
    return isinstance(part, (Min, Max))
