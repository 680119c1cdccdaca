"""Find the side of a test whose program is right on the other side too, so that the exported model needs no If."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations, zip_longest
from typing import Any, NamedTuple

import sympy
import torch

from ..compat import trees as pytree
from ..guards.witnesses import sizes_near
from ..ir.captured_program import RunProgram, SymbolicMeta
from ..ir.expressions import evaluate_at
from ..structure.paths_of_values import Path
from ..trace.events import Arguments
from ..trace.size_domain import SizeAssignment, SizeDomain, max_traced_size

aten = torch.ops.aten
MOVES = {  # calls that only move data
    *(aten.pad.default, aten.constant_pad_nd.default, aten.cat.default, aten.clone.default, aten.contiguous.default, operator.getitem),
    *(aten.slice.Tensor, aten.select.int, aten.narrow.default, aten.split.Tensor, aten.chunk.default),
    *(aten.view.default, aten.reshape.default, aten.flatten.using_ints, aten.unflatten.int, aten.expand.default),
    *(aten.unsqueeze.default, aten.squeeze.dim, aten.transpose.int, aten.permute.default),
}
SAMPLES = (1, 2, 3, 5, 8, 64, 128, 1000)
ENOUGH = 3  # settings
MOST = 64
IsRightAt = Callable[[RunProgram, SizeDomain, Arguments, SizeAssignment], bool]


class Side(NamedTuple):
    """The sizes on one side of a test, arguments of such sizes, and the paths found there."""

    axes: SizeDomain
    arguments: Arguments
    paths: Sequence[Path]


def find_general_side(sides: Sequence[Side], axes: SizeDomain, is_right_at: IsRightAt) -> Path | None:
    """Return the path of one side that is right at the sizes of the other, if each side has only one path.

    Both have to compute the same and may only move data in different ways. Otherwise values that no run has could make a difference.

    Args:
        axes: the sizes of both sides.
        is_right_at: returns whether a program gives what the model gives at some sizes, with mutated values and masks.
    """
    for own, other in permutations(sides, 2):
        if own.axes.fixed or not (_is_single(own) and _is_single(other)):
            continue
        program, replaced = own.paths[0].program, other.paths[0].program
        settings = telling_settings(other.axes, (program, replaced))
        if not settings or not all(_compute_the_same(program, replaced, setting) for setting in settings):
            continue
        if all(is_right_at(program, other.axes, other.arguments, setting) for setting in settings):
            return replace(own.paths[0], axes=axes)
    return None


def _is_single(side: Side) -> bool:
    first, *others = side.paths
    return not (others or first.exception or first.sizes or first.diverges_at_one)


def _compute_the_same(program: RunProgram, replaced: RunProgram, setting: SizeAssignment) -> bool:
    """Return whether two programs make the same calls with the same numbers at these sizes, except for calls that move data."""
    pairs = zip_longest(*([node for node in _calls(one) if node.target not in MOVES] for one in (program, replaced)))
    return all(
        one and other and one.target is other.target and _numbers_at(one, setting) == _numbers_at(other, setting) for one, other in pairs
    )


def _numbers_at(node: torch.fx.Node, setting: SizeAssignment) -> list[Any]:
    """Return the arguments of a call that are no tensors, at these sizes."""
    leaves = pytree.tree_leaves((node.args, node.kwargs))
    return [
        None if isinstance(leaf, torch.fx.Node) else evaluate_at(leaf, setting) if isinstance(leaf, sympy.Basic) else leaf
        for leaf in leaves
    ]


def _calls(program: RunProgram) -> Iterator[torch.fx.Node]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from (node for node in module.graph.nodes if node.op == "call_function")


def telling_settings(axes: SizeDomain, programs: Sequence[RunProgram]) -> list[SizeAssignment]:
    """Return sizes at which two programs differ if they differ at any: empty if these are too few or too many.

    A program has the same calls at all of its sizes. Two such programs can be equal at some sizes and differ beyond a number in one of
    their graphs, as `x` and `x[:100]` do. So the sizes near all these numbers are among those returned.
    """
    tests = {test for program in programs for test in _thresholds(program)} | set(axes.conditions)
    found = [*axes.settings(), axes.example]
    for symbol in axes.example:
        others = {other: size for other, size in axes.example.items() if other != symbol}
        near = {size for test in tests if symbol in test.free_symbols for size in sizes_near(test.subs(others))}
        found += [{**axes.example, symbol: size} for size in sorted({*SAMPLES, *near}) if size <= max_traced_size()]
    allowed = {tuple(setting.items()): setting for setting in found if axes.clamp(setting) == setting and axes.satisfies(setting)}
    return list(allowed.values()) if ENOUGH <= len(allowed) <= MOST else []


def _thresholds(program: RunProgram) -> Iterator[sympy.Basic]:
    """Yield comparisons of the sizes of tensors with the numbers that a call takes beside these tensors."""
    for node in _calls(program):
        sizes = {size for operand in (node, *node.all_input_nodes) for size in _sizes_of(operand)}
        numbers = {1, *(abs(leaf) for leaf in pytree.tree_leaves((node.args, node.kwargs)) if type(leaf) is int)}
        yield from (size > number for size in sizes for number in numbers if number <= max_traced_size())


def _sizes_of(node: torch.fx.Node) -> Iterator[sympy.Expr]:
    """Yield the expressions among the sizes of the tensors that a call returns."""
    values = node.meta.get("val")
    for value in values if isinstance(values, (tuple, list)) else (values,):
        if isinstance(value, SymbolicMeta):
            yield from (size for size in value.sizes if isinstance(size, sympy.Basic) and size.free_symbols)
