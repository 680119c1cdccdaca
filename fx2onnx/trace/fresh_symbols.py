"""Data-dependent sizes and numbers: each has a fresh symbol, u0, u1, ..., and its own value in each run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sympy
import torch

from ..compat.dispatch import disable_current_modes
from ..guards.decisions import MOST, Range
from .events import OpEvent, TensorMeta, Trace
from .path_decisions import BRANCH

BINDINGS = "unbacked_bindings"  # in the `meta` of a node, as in torch.export: the symbols that it defines, and where


class Origin(NamedTuple):
    """Where a symbol is defined: the outcomes of earlier tests of values, the call, its operator, and the result and axis."""

    answers: tuple[bool, ...]
    call: int
    op: Any
    part: int = 0
    axis: int | None = None  # None for a number that is read from a tensor


@dataclass
class FreshSymbols:
    """The data-dependent symbols of all runs of a model. The same origin has the same symbol in every capture.

    torch treats symbols whose names begin with u as unbacked, so their names begin with an underscore where torch sees them.

    Attributes:
        origins: where each symbol is defined.
        lines: the line of the model that defines it.
        places: the results and axes that have each symbol.
    """

    origins: dict[sympy.Symbol, Origin] = field(default_factory=dict)
    lines: dict[sympy.Symbol, str] = field(default_factory=dict)
    places: dict[sympy.Symbol, dict[tuple[int, int | None], None]] = field(default_factory=dict)
    _symbols: dict[Origin, sympy.Symbol] = field(default_factory=dict)

    def of(self, origin: Origin, line: str) -> sympy.Symbol:
        """Return the symbol of this origin. A size is never negative, but a number may be."""
        if origin not in self._symbols:
            is_size = True if origin.axis is not None else None
            symbol = self._symbols[origin] = sympy.Symbol(f"_u{len(self._symbols)}", integer=True, nonnegative=is_size)
            self.origins[symbol], self.lines[symbol] = origin, line
            self.places[symbol] = {(origin.part, origin.axis): None}
        return self._symbols[origin]

    @property
    def names(self) -> dict[sympy.Symbol, str]:
        """The displayed names of the symbols."""
        return {symbol: str(symbol).removeprefix("_") for symbol in self.origins}

    def range_of(self, symbol: sympy.Symbol) -> Range:
        """Return the range of a symbol."""
        return (0 if symbol.is_nonnegative else -MOST), MOST

    def among(self, expression: Any) -> set[sympy.Symbol]:
        """Return the data-dependent symbols of an expression."""
        return {symbol for symbol in expression.free_symbols if symbol in self.origins} if isinstance(expression, sympy.Basic) else set()

    def satisfies(self, test: sympy.Basic, found: Trace, setting: Mapping[sympy.Symbol, int]) -> bool:
        """Return whether a test holds in a run. It counts as true if the run did not reach one of its symbols."""
        numbers = {symbol: self._number_in(found, self.origins[symbol]) for symbol in self.among(test)}
        if any(number is None for number in numbers.values()):
            return True
        return bool(test.subs({**setting, **numbers}) == sympy.true)

    def numbers_in(self, found: Trace) -> dict[sympy.Symbol, int]:
        """Return the values of the symbols that a run defines."""
        numbers = ((symbol, self._number_in(found, origin)) for symbol, origin in self.origins.items())
        return {symbol: number for symbol, number in numbers if number is not None}

    def _number_in(self, found: Trace, origin: Origin) -> int | None:
        rows = found.rows
        if origin.call >= len(rows) or rows[origin.call].op is not origin.op or answers_before(rows, origin.call) != origin.answers:
            return None
        result = rows[origin.call].made[origin.part]
        if origin.axis is None:
            return result if isinstance(result, int) else None
        return result.shape[origin.axis] if isinstance(result, TensorMeta) and origin.axis < len(result.shape) else None


@dataclass(frozen=True)
class Pretended:
    """Values that a run uses for symbols, whatever it computes: results are cut or repeated to these sizes.

    Args:
        numbers: the values of the symbols.
    """

    fresh: FreshSymbols
    numbers: Mapping[sympy.Symbol, int]

    def __call__(self, rows: Sequence[OpEvent], op: Any, found: Any) -> Any:
        """Return the result of a call that follows these rows, with the pretended sizes."""
        before = answers_before(rows, len(rows))
        for symbol, number in self.numbers.items():
            origin = self.fresh.origins[symbol]
            if (origin.answers, origin.call, origin.op) == (before, len(rows), op):
                found = self._resize_results(found, self.fresh.places[symbol], number)
        return found

    def _resize_results(self, found: Any, places: Collection[tuple[int, int | None]], number: int) -> Any:
        if isinstance(found, (tuple, list)):
            return type(found)(
                [self._resize_results(one, [(0, axis) for at, axis in places if at == part], number) for part, one in enumerate(found)]
            )
        for _, axis in places:
            found = number if axis is None else _resize_axis(found, axis, number)
        return found


def _resize_axis(tensor: torch.Tensor, axis: int, length: int) -> torch.Tensor:
    """Return a tensor with this length along an axis: its entries are repeated or cut, or zeros if it has none."""
    with disable_current_modes():
        if not tensor.shape[axis]:
            return tensor.new_zeros([length if at == axis else size for at, size in enumerate(tensor.shape)])
        return tensor.index_select(axis, torch.arange(length) % tensor.shape[axis])


def answers_before(rows: Sequence[OpEvent], number: int) -> tuple[bool, ...]:
    """Return the outcomes of the tests of values before a call."""
    return tuple(bool(row.made[0]) for row in rows[:number] if row.op is BRANCH)


def decided_by_values(rows: Sequence[OpEvent]) -> Iterator[OpEvent]:
    """Yield the calls whose results have data-dependent sizes."""
    return (row for row in rows if row.by_values)
