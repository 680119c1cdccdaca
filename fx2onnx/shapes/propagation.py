"""Sizes of operator results, from shape functions or from a call with fake tensors and symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import sympy
import torch
from torch.fx.node import map_aggregate

from ..compat import trees as pytree
from ..compat.dispatch import DisableTorchFunction
from ..compat.fake_tensors import FakeTensorMode
from ..compat.operators import OpOverload
from ..ir.captured_program import SymbolicMeta
from ..ir.expressions import Size, evaluate_at, expression, sizes_of
from ..trace.refusal import NoFallback, TraceUnsupported
from ..trace.size_domain import SizeAssignment, SizeDomain, environment_of, new_symbol
from ..trace.source_location import Environment, line_in
from .rules import result_shapes, rule_of
from .sizes import Shape, floor_divide

STEPPING = ("conv", "pool", "unfold", "im2col", "upsample", "slice", "arange", "linspace", "pad", "stft", "split", "chunk", "diag")
FURTHER = (0, 1, 2, 3, 7, 60, 1000, 4000)  # additions to the example's sizes at which torch's guards are evaluated
aten = torch.ops.aten
EXAMPLE = "example"  # in the `meta` of a graph module: the example's sizes, by name
Sizes = Sequence[tuple[Size, ...] | None]


class ShapePropagation:
    """Computes the sizes of results from those of the arguments, in its own environment.

    Args:
        settings: the sizes at which the module was run, where a different outcome of a guard would have been noticed.
    """

    def __init__(self, axes: SizeDomain, settings: Sequence[SizeAssignment]) -> None:
        self._axes, self._example, self._settings = axes, axes.example, settings

    def of(self, node: torch.fx.Node) -> Sizes:
        """Return the sizes of each result of a call; empty if torch cannot compute them, or reads a size as a number for that.

        Raises:
            TraceUnsupported: If a guard of torch, which all runs satisfy, changes the sizes at larger sizes.
        """
        if (found := sizes_by_rule(node)) is not None:
            return found
        sizes, tests = self._propagate_fake(node)
        if sizes is None:
            return []
        if not is_windowed(node.target):  # type: ignore[arg-type]  # other operators only test whether sizes are equal, as eager requires
            return [] if any(map(_is_specialisation, tests)) else sizes
        for test in tests:
            holds_in_runs = all(evaluate_at(test, setting) == sympy.true for setting in self._settings)
            other = next((setting for setting in self._larger(test) if evaluate_at(test, setting) == sympy.false), None)
            if holds_in_runs and other is not None and not self._has_same_sizes_at(other, node, sizes):
                raise TraceUnsupported(
                    f"the result size of {node.target} depends on a condition that is true in all runs: {self._axes.format_size(test)}"
                )
        return sizes

    def _propagate_fake(self, node: torch.fx.Node) -> tuple[Sizes | None, list[sympy.Basic]]:
        """Return torch's sizes (None if it fails) and its guards; each call is made once."""
        leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
        key = node.target, spec, *self._example.items(), *((type(leaf), _known_of(leaf)) for leaf in leaves)
        if key not in self._axes.worked_out:
            self._axes.worked_out[key] = self._run_fake(node)
        found: tuple[Sizes | None, list[sympy.Basic]] = self._axes.worked_out[key]
        return found

    def _run_fake(self, node: torch.fx.Node) -> tuple[Sizes | None, list[sympy.Basic]]:
        environment = environment_of(self._example, self._axes.names)
        try:
            with DisableTorchFunction(), torch.no_grad(), FakeTensorMode(shape_env=environment):
                args, kwargs = pytree.tree_map(partial(self._argument, environment), (node.args, dict(node.kwargs)))
                results = pytree.tree_leaves(node.target(*args, **kwargs))  # type: ignore[operator]
            sizes = [sizes_of(result) if isinstance(result, torch.Tensor) else None for result in results]
        except Exception:  # noqa: BLE001 - only one of several sources of a size, all compared with the runs
            return None, []
        return sizes, [guard.expr for guard in environment.guards]

    def _has_same_sizes_at(self, setting: SizeAssignment, node: torch.fx.Node, sizes: Sizes) -> bool:
        """Whether a guard has no effect on the sizes, such as the choice of a convolution kernel by size and threads."""
        return ShapePropagation(replace(self._axes, example=setting), self._settings)._propagate_fake(node)[0] == sizes

    def _larger(self, test: sympy.Basic) -> Iterator[SizeAssignment]:
        """The sizes at which a test is evaluated; sizes not in the test are the example's."""
        further = FURTHER if len(self._example) < 3 else FURTHER[:4]
        symbols = [symbol for symbol in self._example if symbol in test.free_symbols]
        for more in product(further, repeat=len(symbols)):
            yield self._example | {symbol: self._example[symbol] + n for symbol, n in zip(symbols, more, strict=True)}

    def _argument(self, environment: Environment, leaf: Any) -> Any:
        def number(size: Any) -> Any:
            return size if isinstance(size, int) else environment.create_symintnode(size, hint=int(size.subs(self._example)))

        if isinstance(leaf, torch.fx.Node):
            value = leaf.meta["val"]
            return torch.empty([number(size) for size in value.sizes], dtype=value.dtype) if isinstance(value, SymbolicMeta) else value
        return number(leaf) if isinstance(leaf, sympy.Basic) else leaf


def _is_specialisation(test: sympy.Basic) -> bool:
    """Whether a guard sets a size to a number: kernels in C++, such as that of a matrix norm, read sizes as numbers."""
    return isinstance(test, sympy.Eq) and isinstance(test.lhs, sympy.Symbol) and isinstance(test.rhs, sympy.Integer)


def sizes_by_rule(node: torch.fx.Node) -> list[Shape] | None:
    """Return the sizes of each result from the operator's shape function; None if there is none, or if it is inconclusive."""
    if rule_of(node.target) is None or any("times" in argument.meta for argument in node.all_input_nodes):  # a list that a loop fills
        return None
    args, kwargs = map_aggregate((node.args, node.kwargs), _convert_to_shape)
    return result_shapes(node.target, args, kwargs)


def _convert_to_shape(leaf: Any) -> Any:
    value = leaf.meta["val"] if isinstance(leaf, torch.fx.Node) else leaf
    return Shape(value.sizes) if isinstance(value, SymbolicMeta) else value


def _known_of(leaf: Any) -> Any:
    """The metadata of an argument as a cache key."""
    values = pytree.tree_leaves(leaf.meta["val"]) if isinstance(leaf, torch.fx.Node) else [leaf]
    return tuple((value.sizes, value.dtype) if isinstance(value, SymbolicMeta) else expression(value) for value in values)


def fakes_of(node: torch.fx.Node) -> tuple[list[Any], tuple[Any, ...], dict[str, Any]]:
    """Return fake values of the argument nodes of a node, and its arguments, for torch to compute with.

    A SymbolicMeta becomes a fake tensor and an expression becomes a symbolic number, in a new environment.
    """
    values = [argument.meta["val"] for argument in node.all_input_nodes]
    described = [value for value in pytree.tree_leaves(values) if isinstance(value, SymbolicMeta)]
    example = node.graph.owning_module.meta.get(EXAMPLE) if node.graph.owning_module is not None else None
    if not described or example is None:
        return values, node.args, dict(node.kwargs)
    environment = Environment()
    sizes = {new_symbol(environment, name, size): size for name, size in example.items()}
    decided: dict[sympy.Basic, sympy.Basic] = {}  # the unbacked symbol of each data-dependent symbol

    def number(size: Any) -> Any:
        for symbol in size.free_symbols - set(sizes) - set(decided):
            decided[symbol] = environment.create_unbacked_symint().node.expr
        hint = None if size.free_symbols & set(decided) else int(size.subs(sizes))
        return environment.create_symintnode(size.subs(decided), hint=hint)

    def fake(value: Any) -> Any:
        if not isinstance(value, SymbolicMeta):
            return value
        return torch.empty([size if isinstance(size, int) else number(size) for size in value.sizes], dtype=value.dtype)

    with FakeTensorMode(shape_env=environment):
        fakes = pytree.tree_map(fake, values)
    args, kwargs = pytree.tree_map_only(sympy.Basic, number, (node.args, dict(node.kwargs)))
    return fakes, args, kwargs


def is_windowed(op: OpOverload) -> bool:
    """Return whether an operator steps along an axis, so that several sizes may give the same result."""
    return any(part in op._opname for part in STEPPING)


def check_parts(node: torch.fx.Node, parts: int, axes: SizeDomain, line: str) -> None:
    """Refuse to split an axis into the number of parts in all runs if other sizes give more; fewer cause an error at run time.

    Raises:
        NoFallback: If there are more.
    """
    number = _number_of_parts(node)
    for setting in axes.propose_sizes(number.free_symbols) if isinstance(number, sympy.Basic) else ():
        there = number.subs(setting)
        if not there.is_number or there > parts:
            where, size = axes.format_setting(setting), axes.format_size(there)
            raise NoFallback(f"{node.target} at {line_in(line)} returns {parts} parts in all runs, but {size} at {where}")


def _number_of_parts(node: torch.fx.Node) -> Any:
    """The number of parts into which a node splits an axis, if that depends on the size; None for other operators."""
    if node.target not in (aten.unbind.int, aten.split.Tensor):
        return None
    given: tuple[Any, ...] = (*node.args, node.kwargs.get("dim", 0))
    x, *length, axis = given[: 2 if node.target is aten.unbind.int else 3]
    size = x.meta["val"].sizes[axis]
    return floor_divide(size + length[0] - 1, length[0]) if length else size


def has_symbols(leaves: Sequence[Any]) -> bool:
    """Return whether a call has symbolic sizes as arguments."""
    return any(isinstance(leaf, sympy.Basic) for leaf in leaves)
