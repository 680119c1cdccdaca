"""The sizes at which a model runs, and arguments of these sizes made from the example."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import sympy
import torch

from ..compat import trees as pytree
from ..compat.shape_env import ConstantSource, DimDynamic, ShapeEnv
from ..compat.symbols import FloorDiv, IntTrueDiv, Mod, PythonMod
from ..guards.decisions import MOST, is_implied
from ..guards.dims import DynamicDim, format_with_names
from ..guards.witnesses import FAR_SIZE, SAMPLE_SIZES, fails, is_false, sizes_near
from ..ir.expressions import Size
from .compute_budget import BUDGET
from .fresh_symbols import FreshSymbols
from .refusal import TraceUnsupported
from .source_location import Environment
from .value_witnesses import GIVEN, Values

SizeAssignment = dict[sympy.Symbol, int]
FURTHER = ((2, 3, 5), (1, 3, 2), (1, 1, 1))  # factor, first addition and its increment, for sizes larger than the example's
MAX_TRACED_SIZE = 20_000  # the largest traced size, if runs have a budget
MAX_TRACED_SIZE_WITH_VALUES = 4097  # the same without a budget
FEW = 4  # sizes tried near a condition
MANY = 8  # sizes that are not captured one by one


def max_traced_size() -> int:
    """Return the largest size at which a model is run."""
    return MAX_TRACED_SIZE_WITH_VALUES if BUDGET.get() is None else MAX_TRACED_SIZE


@dataclass(frozen=True)
class SizeDomain:
    """The dynamic axes: the symbol of each, by the id of its tensor and its axis; the ranges of the symbols, and the example's sizes.

    The symbols belong to an environment that records guards.

    Attributes:
        conditions: tests of sizes that hold at all sizes of this domain.
        fixed: symbols that have one size here, or an expression of others, and are no longer dynamic.
        chunk_sizes: the elements of an axis that each iteration of a loop processes, if that is known and more than one.
        values: the values of the arguments of runs.
        pretends: whether runs pretend data-dependent sizes that satisfy the conditions.
        fresh: the symbols of data-dependent sizes and numbers, which have no size in a setting.
        taken: the runs made, also in narrower domains, by what decides their calls and by the number of their values.
        worked_out: the output sizes of operators, and torch's tests of their inputs, by call.
    """

    environment: Environment
    sizes: Mapping[tuple[int, int], sympy.Expr]
    ranges: Mapping[sympy.Symbol, tuple[int, int]]
    example: SizeAssignment
    names: Mapping[sympy.Symbol, str]
    conditions: tuple[sympy.Basic, ...] = ()
    fixed: Mapping[sympy.Symbol, Size] = field(default_factory=dict)
    chunk_sizes: Mapping[sympy.Symbol, int] = field(default_factory=dict)
    values: Values = GIVEN
    pretends: bool = False
    fresh: FreshSymbols = field(default_factory=FreshSymbols, compare=False, repr=False)
    taken: dict[Any, dict[int, Any]] = field(default_factory=dict, compare=False, repr=False)
    worked_out: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, dims: Sequence[DynamicDim], leaves: Sequence[Any]) -> SizeDomain:
        """Create a symbol for each name and each unnamed axis; `past+seq` is the sum of two others if their sizes add up to it.

        Raises:
            TraceUnsupported: If a dimension is derived from another, its size is out of range, or axes of one name differ in size.
        """
        tensors = {id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Tensor)}
        found = [(dim, tensors[dim.tensor].shape[dim.axis]) for dim in dims]
        environment = Environment()
        plain = {dim.name: size for dim, size in found}
        composed = {name: parts for name, size in plain.items() if (parts := _sum_of(name, size, plain)) is not None}
        symbols = {name: new_symbol(environment, name, size) for name, size in plain.items() if name not in composed}
        sizes: dict[tuple[int, int], sympy.Expr] = {}
        ranges = dict.fromkeys(symbols.values(), (1, max_traced_size()))
        for dim, size in found:
            if dim.derived:
                raise TraceUnsupported(f'"{dim.name}" is derived from another size, which only torch.export supports')
            if size < dim.least or (isinstance(dim.most, int) and size > dim.most):
                raise TraceUnsupported(f'"{dim.name}" is {size} in the example, which is outside {dim.least} to {dim.most}')
            if size != plain[dim.name]:
                raise TraceUnsupported(f'axes named "{dim.name}" have different sizes in the example, {plain[dim.name]} and {size}')
            if dim.name in composed:
                sizes[dim.tensor, dim.axis] = sum(symbols[part] if part in symbols else int(part) for part in composed[dim.name])
                continue
            symbol = sizes[dim.tensor, dim.axis] = symbols[dim.name]
            ranges[symbol] = max(ranges[symbol][0], dim.least), min(ranges[symbol][1], dim.most or max_traced_size())
        example = {symbol: plain[name] for name, symbol in symbols.items()}
        return cls(environment, sizes, ranges, example, {symbol: name for name, symbol in symbols.items()})

    def settings(self, few: bool = False) -> Iterator[SizeAssignment]:
        """Yield sizes longer than the example's, the smallest, and sizes near the conditions; one empty setting if nothing is dynamic.

        Args:
            few: whether to leave out the settings that distinguish expressions of several sizes.
        """
        if not self.example:
            yield {}
            return
        for further in FURTHER[: None if self.conditions else 1]:
            yield self._longer(*further)
        yield from () if few and not self.conditions else self.swap_size_order()
        yield self.clamp(dict.fromkeys(self.example, 1))
        for symbol in sorted({symbol for test in self.conditions for symbol in test.free_symbols} & set(self.example), key=str):
            for size in self.candidates(symbol)[:FEW]:
                yield self.clamp({other: 2 * n + 1 + 2 * i for i, (other, n) in enumerate(self.example.items())} | {symbol: size})

    def swap_size_order(self) -> list[SizeAssignment]:
        """Return sizes in reverse order: the longest becomes the shortest."""
        if len(self.example) < 2:
            return []
        sizes = sorted(self.example.values())
        order = sorted(self.example, key=lambda symbol: -self.example[symbol])
        return [self.clamp({symbol: size + 2 + 3 * i for i, (symbol, size) in enumerate(zip(order, sizes, strict=True))})]

    def spare(self) -> list[SizeAssignment]:
        """Return further settings, for when the first ones are not sufficient."""
        return [self._longer(*further) for further in FURTHER[1:]]

    def longer(self) -> SizeAssignment:
        """Return sizes longer than the example's."""
        return self._longer(*FURTHER[0])

    def _longer(self, times: int, first: int, step: int) -> SizeAssignment:
        return self.clamp({symbol: times * size + first + step * i for i, (symbol, size) in enumerate(self.example.items())})

    def clamp(self, setting: SizeAssignment) -> SizeAssignment:
        """Return the nearest setting that satisfies the ranges and, if one of the sizes tried does, the conditions."""
        near = {symbol: self._nearest(symbol, size) for symbol, size in setting.items()}
        return near if self.satisfies(near) else next(self._vary_one_size(near), near)

    def satisfies(self, setting: SizeAssignment) -> bool:
        """Return whether these sizes satisfy the conditions."""
        return not any(fails(test, setting) for test in self.conditions)

    def _vary_one_size(self, setting: SizeAssignment) -> Iterator[SizeAssignment]:
        """Yield settings that satisfy the conditions and change one size of a condition on several, nearest first."""
        joint = {symbol for test in self.conditions if len(test.free_symbols) > 1 for symbol in test.free_symbols}
        for symbol in sorted(joint & set(setting), key=str):
            others = {other: size for other, size in setting.items() if other != symbol}
            near = {size for test in self.conditions for size in sizes_near(test.subs(others))}
            for size in sorted({*self.candidates(symbol), *near}, key=lambda n: abs(n - setting[symbol])):
                if self._is_in_range(symbol, size) and self.satisfies({**setting, symbol: size}):
                    yield {**setting, symbol: size}

    def _is_in_range(self, symbol: sympy.Symbol, size: int) -> bool:
        least, most = self.ranges[symbol]
        return least <= size <= most

    def _nearest(self, symbol: sympy.Symbol, size: int) -> int:
        least, most = self.ranges[symbol]
        size = min(max(size, least), most)
        if self._allows(symbol, size):
            return size
        return min((n for n in self.candidates(symbol) if n <= most), key=lambda n: abs(n - size), default=size)

    def _allows(self, symbol: sympy.Symbol, size: int) -> bool:
        return not any(is_false(test, symbol, size) for test in self.conditions)

    def candidates(self, symbol: sympy.Symbol) -> list[int]:
        """Return sizes that the conditions allow: samples, and sizes at which a condition may change."""
        least, most = self.ranges[symbol]
        least_others = {other: ends[0] for other, ends in self.ranges.items() if other != symbol}
        alone = (test.subs(least_others) for test in self.conditions if len(test.free_symbols) > 1)
        near = {size for test in (*self.conditions, *alone) for size in sizes_near(test)}
        top = most if most < max_traced_size() else FAR_SIZE
        return [n for n in sorted({*SAMPLE_SIZES, *near, FAR_SIZE}) if least <= n <= top and self._allows(symbol, n)]

    def propose_sizes(self, symbols: Collection[sympy.Symbol]) -> Iterator[SizeAssignment]:
        """Yield allowed settings, some never run, in which one of these sizes differs from the example, and then all are equal."""
        moving = [symbol for symbol in self.example if symbol in symbols]
        for symbol in moving:
            alone = ({**self.example, symbol: size} for size in self.candidates(symbol) if size <= max_traced_size())
            yield from filter(self.satisfies, alone)
        yield from (self.clamp({**self.example, **dict.fromkeys(moving, size)}) for size in SAMPLE_SIZES)

    def ranges_of(self, expression: sympy.Basic) -> dict[sympy.Symbol, tuple[int, int]]:
        """Return the ranges of the symbols of an expression, without the limit on traced sizes."""
        decided = {symbol: self.fresh.range_of(symbol) for symbol in self.fresh.among(expression)}
        declared = {symbol: self.ranges[symbol] for symbol in expression.free_symbols if symbol in self.ranges}
        return {**{symbol: (least, most if most < max_traced_size() else MOST) for symbol, (least, most) in declared.items()}, **decided}

    def is_one(self, symbol: sympy.Symbol) -> bool:
        """Return whether the only candidate is also the only size that satisfies the conditions."""
        (size,) = self.candidates(symbol)
        return self._is_implied(sympy.Eq(symbol, size), symbol)

    def _is_implied(self, test: sympy.Basic, symbol: sympy.Symbol) -> bool:
        """Return whether a test of a symbol follows from its range and the conditions on it alone."""
        alone = [condition for condition in self.conditions if condition.free_symbols == {symbol}]
        least, most = self.ranges[symbol]
        return is_implied(test, {symbol: (least, most if most < max_traced_size() else MOST)}, alone)

    def has_few_sizes(self, symbol: sympy.Symbol) -> bool:
        """Return whether only a few sizes satisfy the conditions, but more than one."""
        found = self.candidates(symbol)
        return 1 < len(found) <= MANY and self._is_implied(sympy.Le(symbol, found[-1]), symbol) and found[-1] - found[0] < MANY

    def count(self) -> int:
        """Return the number of candidate settings if there are conditions, or the largest traced size."""
        return prod(len(self.candidates(symbol)) for symbol in self.example) if self.conditions else max_traced_size()

    def assume(self, test: sympy.Basic, arguments: Any) -> tuple[SizeDomain, Any]:
        """Return the domain and arguments in which a test holds, with a new environment.

        Raises:
            TraceUnsupported: If no such size can be run.
        """
        if (equal := solve_equation(test)) is not None:
            return self._derive(self._following(*equal), dict([equal]), arguments)
        apart = replace(self, conditions=(*self.conditions, test))
        candidates = {symbol: apart.candidates(symbol) for symbol in self.example}
        if not all(sizes and sizes[0] <= max_traced_size() for sizes in candidates.values()):
            raise TraceUnsupported(f"no size that can be tried satisfies {self.format_size(test)}")
        if any(len(sizes) == 1 and not (apart.is_one(symbol) and sizes[0] < max_traced_size()) for symbol, sizes in candidates.items()):
            raise TraceUnsupported(f"only one size that satisfies {self.format_size(test)} can be tried")
        fixed = {symbol: sizes[0] for symbol, sizes in candidates.items() if len(sizes) == 1}
        if not apart.satisfies(apart.clamp(self.example)):
            raise TraceUnsupported(f"no size that can be tried satisfies {self.format_size(test)}")
        return self._derive(apart, fixed, arguments)

    def chunk_axis(self, test: sympy.Basic, arguments: Any) -> tuple[SizeDomain, Any] | None:
        """Return the domain and arguments for a loop over chunks, if a test may depend on the number of chunks."""
        parts = {part.args[1] for part in test.atoms(FloorDiv, IntTrueDiv, Mod, PythonMod) if part.args[1].is_Integer}
        if self.chunk_sizes or len(test.free_symbols) != 1 or len(parts) != 1:
            return None
        (symbol,), (size,) = test.free_symbols, parts
        return self._derive(replace(self, chunk_sizes={symbol: int(size)}), {}, arguments)

    def replace_example(self, symbol: sympy.Symbol, size: int, arguments: Any) -> tuple[SizeDomain, Any]:
        """Return the domain and arguments with another example size for one symbol."""
        moved = replace(self, example={**self.example, symbol: size})
        return moved._derive(moved, {}, arguments)

    def set_to_zero(self, symbol: sympy.Symbol, arguments: Any) -> tuple[SizeDomain, Any]:
        """Return the domain and arguments with one size 0, without the conditions."""
        return self._derive(replace(self, conditions=()), {symbol: 0}, arguments)

    def format_setting(self, setting: Mapping[sympy.Symbol, Size]) -> str:
        """Return a readable setting."""
        return ", ".join(f"{self.names[symbol]} = {self.format_size(size)}" for symbol, size in setting.items())

    def format_size(self, size: Any) -> str:
        """Return a readable size or test, or all sizes of a shape."""
        names = {**self.names, **self.fresh.names}
        return f"({', '.join(map(self.format_size, size))})" if isinstance(size, (tuple, list)) else format_with_names(size, names)

    def _following(self, symbol: sympy.Symbol, value: sympy.Expr) -> SizeDomain:
        """Return the domain in which one size equals an expression of others, with its range as conditions."""
        least, most = self.ranges[symbol]
        bounds = (value >= least, *([value <= most] if most < max_traced_size() else []))
        conditions = (*(test.subs(symbol, value) for test in self.conditions), *bounds)
        return replace(self, conditions=tuple(test for test in conditions if test != sympy.true and not _always(test)))

    def _derive(self, apart: SizeDomain, fixed: Mapping[sympy.Symbol, Size], arguments: Any) -> tuple[SizeDomain, Any]:
        """Return the domain with some sizes fixed, and arguments of these sizes, with a new environment."""
        free = {symbol: size for symbol, size in self.example.items() if symbol not in fixed}
        moving = apart.clamp(free)
        if apart.conditions and not apart.satisfies(moving):
            raise TraceUnsupported(f"no size that can be tried satisfies {' and '.join(map(self.format_size, apart.conditions))}")
        if not fixed and apart.chunk_sizes == self.chunk_sizes and self.environment.has_followed_at(moving):
            return replace(apart, environment=self.environment), arguments
        example = moving | {symbol: int(sympy.sympify(size).subs(moving)) for symbol, size in fixed.items()}
        moved = self.at(arguments, example)
        environment = environment_of(moving, self.names)
        pairs = zip(pytree.tree_leaves(arguments), pytree.tree_leaves(moved), strict=True)
        places = {id(old): id(new) for old, new in pairs if isinstance(old, torch.Tensor)}
        sizes = {(places[tensor], axis): size.subs(fixed) for (tensor, axis), size in self.sizes.items()}
        sizes = {place: size for place, size in sizes.items() if size.free_symbols}
        return replace(apart, environment=environment, sizes=sizes, example=moving, fixed={**self.fixed, **fixed}), moved

    def at(self, arguments: Any, setting: SizeAssignment, run: int = 0) -> Any:
        """Return copies of the arguments at these sizes; longer axes repeat the given values.

        Each run starts at another element and scales floats slightly, so tensors created from values differ between runs. In a run without
        values, large float arguments have no values.

        Raises:
            NeedsRealValues: If the arguments of a run with values are too large together.
        """
        work = BUDGET.get()
        if work is not None and work.has_values:
            work.check_inputs(self._elements(leaf, setting) for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor))

        def resized(leaf: torch.Tensor) -> torch.Tensor:
            tensor = leaf.detach()
            if work is not None and work.leaves_out_input(leaf, self._elements(leaf, setting)):
                return work.empty(leaf, self._shape(leaf, setting))
            for axis in range(leaf.dim()):
                if (size := self.sizes.get((id(leaf), axis))) is not None:
                    tensor = _resize_axis(tensor, axis, _at(size, setting), run)
            tensor = tensor.clone() if tensor.data_ptr() == leaf.data_ptr() else tensor
            tensor = tensor.mul_(1 - run / 64) if run and tensor.is_floating_point() else tensor
            return tensor if self.values is GIVEN else self.values.of(tensor)

        with nullcontext() if work is None else work.building():
            return pytree.tree_map_only(torch.Tensor, resized, arguments)

    def shapes(self, arguments: Any, setting: SizeAssignment) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the arguments at these sizes."""
        return tuple(self._shape(leaf, setting) for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor))

    def _shape(self, leaf: torch.Tensor, setting: SizeAssignment) -> tuple[int, ...]:
        """The shape of an argument at these sizes."""
        sizes = (self.sizes.get((id(leaf), axis), size) for axis, size in enumerate(leaf.shape))
        return tuple(size if isinstance(size, int) else _at(size, setting) for size in sizes)

    def _elements(self, leaf: torch.Tensor, setting: SizeAssignment) -> int:
        return prod(self._shape(leaf, setting))


def _at(size: sympy.Expr, setting: SizeAssignment) -> int:
    return setting[size] if size in setting else int(size.subs(setting))


def _resize_axis(tensor: torch.Tensor, axis: int, size: int, start: int) -> torch.Tensor:
    if tensor.shape[axis] == size and not start:
        return tensor
    if not tensor.shape[axis]:
        raise TraceUnsupported(f"axis {axis} of an argument has size 0 in the example, so no argument of another size can be made from it")
    return tensor.index_select(axis, (torch.arange(size, device=tensor.device) + start) % tensor.shape[axis])


def solve_equation(test: sympy.Basic) -> tuple[sympy.Symbol, sympy.Expr] | None:
    """Return a symbol of an equation of several sizes, and its value as a polynomial of the others; None for other tests."""
    if not isinstance(test, sympy.Eq) or len(test.free_symbols) < 2:
        return None
    line = test.lhs - test.rhs
    if not line.is_polynomial(*line.free_symbols):
        return None
    line = sympy.Poly(line).primitive()[1].as_expr()
    found = [(symbol, symbol - line / line.diff(symbol)) for symbol in sorted(test.free_symbols, key=str) if line.diff(symbol) in (1, -1)]
    found = [(symbol, sympy.expand(value)) for symbol, value in found]
    return max(found, key=lambda pair: pair[1].subs(dict.fromkeys(pair[1].free_symbols, 1)), default=None)


def _always(test: sympy.Basic) -> bool:
    """Whether a lower bound holds for all sizes of 1 or more: the expression grows, and the bound holds at 1."""
    line = test.lhs - test.rhs
    grows = all(line.diff(symbol).is_positive for symbol in line.free_symbols)
    return isinstance(test, sympy.Ge) and grows and bool(line.subs(dict.fromkeys(line.free_symbols, 1)) >= 0)


def _sum_of(name: str, size: int, sizes: Mapping[str, int]) -> list[str] | None:
    """The summands of a name like `past+seq` if their sizes add up to this one; None for other names."""
    parts = [part.strip() for part in name.split("+")]
    if len(parts) == 1 or any(part not in sizes and not part.isdigit() for part in parts):
        return None
    return parts if sum(sizes[part] if part in sizes else int(part) for part in parts) == size else None


def environment_of(sizes: SizeAssignment, names: Mapping[sympy.Symbol, str]) -> Environment:
    """Return an environment with these sizes and without guards."""
    environment = Environment()
    for symbol, size in sizes.items():
        new_symbol(environment, names[symbol], size)
    return environment


def new_symbol(environment: ShapeEnv, name: str, size: int) -> sympy.Symbol:
    """Return the symbol of this name. All environments have the same symbol for a name."""
    symbol = environment.create_symbol(size, ConstantSource(name), dynamic_dim=DimDynamic.DYNAMIC, do_not_specialize_zero_one=True)
    assert isinstance(symbol, sympy.Symbol)
    return symbol
