"""Capture elementwise models whose differently named axes have equal sizes in the example but may broadcast later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, zip_longest
from typing import Any

import sympy
import torch
from torch.export.graph_signature import InputKind

from ..compat import trees as pytree
from ..guards.dims import DynamicDim
from ..ir.captured_program import RunProgram, SymbolicMeta
from ..ir.expressions import Size
from ..structure.paths_of_values import Path
from ..trace.events import Arguments
from ..trace.refusal import NeedsRealValues, NoFallback, TraceUnsupported
from ..trace.size_domain import SizeDomain
from .guard_forking import GuardForking

aten = torch.ops.aten
PAIRS = ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
ALONE = ("abs", "cos", "erf", "exp", "log", "neg", "reciprocal", "relu", "rsqrt", "sigmoid", "silu", "sin", "sqrt", "tanh")
BY_ELEMENT = frozenset(  # each becomes ONNX operators with the same broadcasting
    [
        *(getattr(aten, name).Tensor for name in PAIRS),
        *(getattr(aten, name).Scalar for name in PAIRS),
        *(getattr(aten, name).default for name in (*ALONE, "maximum", "minimum", "logical_and", "logical_or", "logical_not")),
    ]
)


def paths_of(
    regions: GuardForking,
    capture: Callable[[SizeDomain, Arguments], list[Path]],
    dims: Sequence[DynamicDim],
    axes: SizeDomain,
    arguments: Arguments,
) -> list[Path]:
    """Return the paths of a model, or the one elementwise path, if it runs only with equal sizes.

    Raises:
        TraceUnsupported: If there are none.
        FrozenDimension: If an axis loses sizes to a test.
    """
    try:
        return regions.paths(axes, arguments)
    except (NoFallback, NeedsRealValues):
        raise
    except TraceUnsupported:
        if (found := _capture_elementwise(capture, dims, axes, arguments)) is None:
            raise
        return [found]


def _capture_elementwise(
    capture: Callable[[SizeDomain, Arguments], list[Path]], dims: Sequence[DynamicDim], axes: SizeDomain, arguments: Arguments
) -> Path | None:
    """Capture a model with equal axes of the example tied together; None if some operators are not elementwise."""
    leaves = pytree.tree_leaves(arguments)
    sizes = {dim: axes.example.get(axes.sizes[dim.tensor, dim.axis]) for dim in dims}
    first = {size: dim.name for dim, size in reversed(sizes.items())}
    tied = [replace(dim, name=first[size]) for dim, size in sizes.items()]
    if None in first or tied == list(dims):
        return None
    together = SizeDomain.of(tied, leaves)
    try:
        (path, *more) = capture(together, arguments)
    except TraceUnsupported:
        return None
    if more or path.exception is not None or together.environment.guards or not _is_by_element(path.program):
        return None
    _describe(path.program, axes, leaves)
    return path


def _is_by_element(program: RunProgram) -> bool:
    calls = _calls(program)
    return bool(calls) and all(node.target in BY_ELEMENT and not _sizes_in(node.args) for node in calls)


def _calls(program: RunProgram) -> list[torch.fx.Node]:
    return [node for node in program.graph.nodes if node.op == "call_function"]


def _sizes_in(arguments: Any) -> bool:
    return any(isinstance(leaf, sympy.Basic) for leaf in pytree.tree_leaves(arguments))


def _describe(program: RunProgram, axes: SizeDomain, leaves: Sequence[Any]) -> None:
    """Give the inputs of a program their declared sizes, and each call its broadcast sizes."""
    given = iter(leaves)
    for node, spec in zip(program.graph.find_nodes(op="placeholder"), program.graph_signature.input_specs, strict=True):
        leaf = next(given) if spec.kind == InputKind.USER_INPUT else None
        if isinstance(leaf, torch.Tensor):
            _resize(node, [axes.sizes.get((id(leaf), axis), size) for axis, size in enumerate(leaf.shape)])
    named: dict[frozenset[Size], sympy.Symbol] = {}
    names = (name for number in count() if (name := f"u{number}") not in axes.names.values())
    for node in _calls(program):
        shapes = [reversed(argument.meta["val"].sizes) for argument in node.all_input_nodes]
        found = [_broadcast(frozenset(sizes) - {1}, named, names) for sizes in zip_longest(*shapes, fillvalue=1)]
        _resize(node, found[::-1])


def _broadcast(sizes: frozenset[Size], named: dict[frozenset[Size], sympy.Symbol], names: Any) -> Size:
    if len(sizes) < 2:
        return next(iter(sizes), 1)
    if sizes not in named:
        named[sizes] = sympy.Symbol(next(names), integer=True, nonnegative=True)
    return named[sizes]


def _resize(node: torch.fx.Node, sizes: Sequence[Size]) -> None:
    value = node.meta["val"]
    node.meta["val"] = SymbolicMeta.of(sizes, value.dtype, value.memory)
