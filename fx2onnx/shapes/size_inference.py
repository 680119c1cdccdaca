"""Infer integers that differ between runs as expressions of the dynamic sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, combinations_with_replacement, islice
from math import gcd
from typing import Any, TypeAlias

import sympy
from torch.utils._sympy.functions import FloorDiv

from ..guards.witnesses import sizes_near
from ..ir.expressions import Size, evaluate_at
from ..trace.size_domain import SizeAssignment
from .sizes import plain

SAMPLE_SIZES = (1, 2, 3, 5, 7, 31, 64, 101, 999, 4097, 100_003)
LARGEST_STEP = 64  # the largest step of a window: size // step
FAR = range(100_000, 100_000 + 2 * LARGEST_STEP)  # additions to sizes at which expressions are compared, without a run
Steps: TypeAlias = tuple[sympy.Symbol, int, int]  # a size, a step and an offset: (size + offset) // step


class NoSizeExpression(Exception):
    """No expression matches these integers."""


class Underdetermined(Exception):
    """Several expressions match these integers; they differ at `setting`, or at any further setting if it is None."""

    def __init__(self, setting: SizeAssignment | None = None) -> None:
        super().__init__(str(setting))
        self.setting = setting


class SizeInference:
    """Infers integers from several settings: a constant, `a·size + b`, sums of products of sizes, or a size in steps.

    Args:
        allows: whether a setting is considered; expressions that differ only at other settings count as equal.
        fewest: the settings needed for integers without a known expression; with fewer, every expression is ambiguous.

    Attributes:
        decided: the value of each data-dependent symbol in each run. They are not used for inference: torch propagates them.
    """

    def __init__(
        self, settings: Sequence[SizeAssignment], allows: Callable[[SizeAssignment], bool] = lambda setting: True, fewest: int = 0
    ) -> None:
        self.settings, self._allows, self._fewest = settings, allows, fewest
        self.decided: dict[sympy.Symbol, tuple[int, ...]] = {}
        self._known: dict[tuple[int, ...], Size] = {}
        self._given: dict[tuple[int, ...], Size] = {}  # the expressions from shape functions
        self._at_settings: dict[sympy.Basic, tuple[sympy.Basic, ...]] = {}
        self._special: dict[sympy.Basic, bool] = {}
        self._simplest: dict[sympy.Basic, Size] = {}

    @cached_property
    def _columns(self) -> list[tuple[sympy.Expr, list[int]]]:
        """Sizes and products of two sizes, with their values at each setting, except those that are constant."""
        symbols = list(self.settings[0])
        pairs = [(a * b, [s[a] * s[b] for s in self.settings]) for a, b in combinations_with_replacement(symbols, 2)]
        columns = [(a, [s[a] for s in self.settings]) for a in symbols] + pairs
        return [column for column in columns if len(set(column[1])) > 1]

    def of(self, values: tuple[int, ...]) -> Size:
        """Return the expression that matches these integers, one for each setting.

        Raises:
            NoSizeExpression: If there is none.
            Underdetermined: If another setting would decide.
        """
        if len(set(values)) == 1:
            return values[0]
        if len(self.settings) < self._fewest:
            raise Underdetermined
        if values not in self._known:
            self._known[values] = self._found(values)
        return self._known[values]

    def give(self, expression: Size, values: tuple[int, ...]) -> bool:
        """Return whether an expression matches these integers, and if so, prefer it for them from now on."""
        if isinstance(expression, int):
            return set(values) == {expression}
        if not expression.free_symbols <= {*self.settings[0], *self.decided}:  # it contains an unbacked symbol of an operator
            return False
        if self._values(expression) != values:
            return False
        if self.decided.keys().isdisjoint(expression.free_symbols):
            self._remember(values, expression)
        return True

    def learn(self, expression: sympy.Basic, others: Sequence[Any]) -> bool:
        """Return whether an expression of the first run matches the others, and if so, prefer it for integers with these values."""
        values = self._values(expression)
        if any(not value.is_number or value != other for value, other in zip(values[1:], others, strict=True)):
            return False
        if expression.is_integer and expression.free_symbols and self.decided.keys().isdisjoint(expression.free_symbols):
            self._remember(tuple(int(value) for value in values), expression)
        return bool(expression.free_symbols)

    def _remember(self, values: tuple[int, ...], expression: sympy.Basic) -> None:
        """Prefer this expression for these integers from now on, unless sums and products match them."""
        self._given.setdefault(values, expression)

    def is_degenerate(self, size: Size) -> bool:
        """Return whether the runs cannot distinguish a size from a simpler one: `Min(rows, 100)` is `rows` in all of them."""
        if isinstance(size, int) or size.is_Symbol or not size.free_symbols <= set(self.settings[0]):
            return False
        if size not in self._special:
            try:
                shown: Size = self.of(tuple(int(value) for value in self._values(size)))
            except (NoSizeExpression, Underdetermined):  # other integers with these values are ambiguous as well
                shown = size
            self._special[size] = self._differ(size, sympy.sympify(shown))
        return self._special[size]

    def simplest(self, size: Size) -> Size:
        """Return a simpler equivalent of a size with minima, maxima or divisions: a number, `a·size + b`, or a known expression."""
        if isinstance(size, int) or not size.atoms(sympy.core.function.Application) or not size.free_symbols <= set(self.settings[0]):
            return size
        if size not in self._simplest:
            values = tuple(int(value) for value in self._values(size))
            lines = self._single(values) if len(set(values)) > 1 else [sympy.Integer(values[0])]
            tried = chain(lines, [sympy.sympify(self._given[values])] if values in self._given else ())
            self._simplest[size] = plain(next((line for line in tried if not self._differ(size, line)), size))
        return self._simplest[size]

    def _differ(self, one: sympy.Basic, other: sympy.Basic) -> bool:
        """Whether two expressions differ at one of the probes."""
        further = (dict.fromkeys(self.settings[0], at) for at in sizes_near(sympy.Eq(one, other)))
        probes = (*self._probes, *filter(self._allows, further))
        return any(evaluate_at(one, at) != evaluate_at(other, at) for at in probes)

    @cached_property
    def _probes(self) -> list[SizeAssignment]:
        """Settings at which expressions are compared: those that are allowed, or all if none is."""
        symbols = list(self.settings[0])
        alone = [{**self.settings[0], symbol: size} for size in SAMPLE_SIZES for symbol in symbols]
        near = ((dict.fromkeys(symbols, size + more) for more in range(LARGEST_STEP)) for size in SAMPLE_SIZES)
        alike = [setting for sizes in near for setting in islice(filter(self._allows, sizes), 1)]
        return [*alike, *filter(self._allows, alone)] or [*(dict.fromkeys(symbols, size) for size in SAMPLE_SIZES), *alone]

    def _values(self, expression: sympy.Basic) -> tuple[sympy.Basic, ...]:
        """The values of an expression at each setting."""
        if expression not in self._at_settings:
            decided = [(symbol, numbers) for symbol, numbers in self.decided.items() if symbol in expression.free_symbols]
            settings = [{**setting, **{symbol: numbers[at] for symbol, numbers in decided}} for at, setting in enumerate(self.settings)]
            self._at_settings[expression] = tuple(evaluate_at(expression, setting) for setting in settings)
        return self._at_settings[expression]

    def _found(self, values: tuple[int, ...]) -> Size:
        for expression in (*self._single(values), *self._sums(values)):
            return expression
        if values in self._given:
            return self._given[values]
        steps = list(self._steps(values))
        if not steps:
            return self._multiple(values)
        if len(steps) > 1:
            self._check_same(steps)
        return _build_floor_div(*steps[0])

    def _multiple(self, values: tuple[int, ...]) -> Size:
        """A multiple of another expression plus a constant, if there are enough settings to check it."""
        factor = gcd(*(value - values[0] for value in values))
        if factor == 1 or len(values) < 5:
            raise NoSizeExpression(f"nothing explains {values} at {self.settings}")
        rest = values[0] % factor
        return factor * self.of(tuple((value - rest) // factor for value in values)) + rest

    def _single(self, values: tuple[int, ...]) -> Iterator[sympy.Expr]:
        for expression, column in self._columns:
            other = next(i for i, size in enumerate(column) if size != column[0])
            factor, rest = divmod(values[other] - values[0], column[other] - column[0])
            constant = values[0] - factor * column[0]
            if factor and not rest and all(factor * x + constant == v for x, v in zip(column, values, strict=True)):
                yield factor * expression + constant

    def _sums(self, values: tuple[int, ...]) -> Iterator[sympy.Expr]:
        """Two terms and a constant, if there are enough settings to check it."""
        if len(values) < 5:
            return
        for (one, x), (two, y) in combinations(self._columns, 2):
            solved = _solve_linear(x, y, values)
            if solved is None:
                continue
            a, b, c = solved
            if all(a * p + b * q + c == v for p, q, v in zip(x, y, values, strict=True)):
                yield int(a) * one + int(b) * two + int(c)

    def _steps(self, values: tuple[int, ...]) -> Iterator[Steps]:
        """(size + offset) // step, if that matches all values."""
        for symbol in self.settings[0]:
            column = [setting[symbol] for setting in self.settings]
            if any(a == b and v != w for (a, v), (b, w) in combinations(list(zip(column, values, strict=True)), 2)):
                continue
            for step in range(2, LARGEST_STEP + 1):
                low = max(v * step - x for x, v in zip(column, values, strict=True))
                high = min((v + 1) * step - 1 - x for x, v in zip(column, values, strict=True))
                yield from ((symbol, step, offset) for offset in range(low, high + 1))

    def _check_same(self, steps: Sequence[Steps]) -> None:
        """Check that these are equal at allowed settings with one size changed.

        Raises:
            Underdetermined: If they differ; its setting distinguishes most of them.
            NoSizeExpression: If they differ only where nothing can be run.
        """
        near = list(self._vary_one_size(steps, range(1, 4 * LARGEST_STEP)))
        best = max(near, key=lambda trial: len(_evaluate_steps(steps, trial)), default=self.settings[0])
        if len(_evaluate_steps(steps, best)) > 1:
            raise Underdetermined(best)
        if not near or any(len(_evaluate_steps(steps, trial)) > 1 for trial in self._vary_one_size(steps, FAR)):
            raise NoSizeExpression(f"expressions that no size distinguishes: {steps[:3]}")

    def _vary_one_size(self, steps: Sequence[Steps], further: Iterable[int]) -> Iterator[SizeAssignment]:
        """Yield the first setting with one of these sizes increased, if it is allowed and was not run."""
        first = self.settings[0]
        symbols = list(dict.fromkeys(symbol for symbol, _, _ in steps))
        trials = ({**first, symbol: first[symbol] + more} for more in further for symbol in symbols)
        yield from (trial for trial in trials if trial not in self.settings and self._allows(trial))


def _evaluate_steps(steps: Sequence[Steps], setting: SizeAssignment) -> set[int]:
    return {(setting[symbol] + offset) // step for symbol, step, offset in steps}


def _solve_linear(x: Sequence[int], y: Sequence[int], values: Sequence[int]) -> tuple[Fraction, Fraction, Fraction] | None:
    """The integers a, b, c of a·x + b·y + c = value for the first three positions with a unique solution."""
    for i, j in combinations(range(1, len(values)), 2):
        dx, dy, ex, ey = x[i] - x[0], y[i] - y[0], x[j] - x[0], y[j] - y[0]
        if determinant := dx * ey - dy * ex:
            a = Fraction((values[i] - values[0]) * ey - dy * (values[j] - values[0]), determinant)
            b = Fraction(dx * (values[j] - values[0]) - (values[i] - values[0]) * ex, determinant)
            c = values[0] - a * x[0] - b * y[0]
            return (a, b, c) if all(number.denominator == 1 for number in (a, b, c)) else None
    return None


def _build_floor_div(symbol: sympy.Symbol, step: int, offset: int) -> sympy.Expr:
    whole, rest = divmod(offset, step)
    return FloorDiv(symbol + rest, step) + whole
