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
from ..trace.events import Arguments, equal
from ..trace.size_domain import SizeAssignment, SizeDomain, max_traced_size

aten = torch.ops.aten
CLAMPED = {  # calls that move data in another way beyond a number
    *(aten.pad.default, aten.constant_pad_nd.default, aten.slice.Tensor, aten.select.int, aten.narrow.default),
    *(aten.split.Tensor, aten.chunk.default),
}
MOVES = CLAMPED | {
    *(aten.cat.default, aten.clone.default, aten.contiguous.default, operator.getitem),
    *(aten.view.default, aten.reshape.default, aten.flatten.using_ints, aten.unflatten.int, aten.expand.default),
    *(aten.unsqueeze.default, aten.squeeze.dim, aten.transpose.int, aten.permute.default),
}
SAMPLES = (1, 2, 3, 5, 8, 64, 128, 300)
LARGEST = 520  # size at which programs are compared
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
        if _is_single(own) and _is_single(other) and not own.axes.fixed and _is_right_on(other, own.paths[0].program, is_right_at):
            return replace(own.paths[0], axes=axes)
    return None


def _is_right_on(side: Side, program: RunProgram, is_right_at: IsRightAt) -> bool:
    """Return whether the program of the other side is right at the sizes of this one."""
    replaced = side.paths[0].program
    settings = telling_settings(side.axes, (program, replaced))
    if not settings or not _have_equal_constants(program, replaced):
        return False
    compute_the_same = all(_compute_the_same(program, replaced, setting) for setting in settings)
    return compute_the_same and all(is_right_at(program, side.axes, side.arguments, setting) for setting in settings)


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
    """Return the arguments of a call that no other call returns, at these sizes; an input, a weight or a constant by its name."""
    return [_leaf_at(leaf, setting) for leaf in pytree.tree_leaves((node.args, node.kwargs))]


def _leaf_at(leaf: Any, setting: SizeAssignment) -> Any:
    if isinstance(leaf, torch.fx.Node):
        return leaf.target if leaf.op == "placeholder" else None
    return evaluate_at(leaf, setting) if isinstance(leaf, sympy.Basic) else leaf


def _have_equal_constants(program: RunProgram, replaced: RunProgram) -> bool:
    shared = program.constants.keys() & replaced.constants.keys()
    return all(equal(program.constants[name], replaced.constants[name]) for name in shared)


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
    is_too_large = any(size > LARGEST for setting in allowed.values() for size in setting.values())
    return [] if is_too_large or not ENOUGH <= len(allowed) <= MOST else list(allowed.values())


def _thresholds(program: RunProgram) -> Iterator[sympy.Basic]:
    """Yield comparisons of the sizes of tensors with the numbers of calls that move data in another way beyond them."""
    for node in _calls(program):
        sizes = {size for operand in (node, *node.all_input_nodes) for size in _sizes_of(operand)}
        leaves = pytree.tree_leaves((node.args, node.kwargs)) if node.target in CLAMPED else []
        numbers = {1, *(abs(leaf) for leaf in leaves if type(leaf) is int)}
        yield from (size > number for size in sizes for number in numbers if number <= max_traced_size())


def _sizes_of(node: torch.fx.Node) -> Iterator[sympy.Expr]:
    """Yield the expressions among the sizes of the tensors that a call returns."""
    values = node.meta.get("val")
    for value in values if isinstance(values, (tuple, list)) else (values,):
        if isinstance(value, SymbolicMeta):
            yield from (size for size in value.sizes if isinstance(size, sympy.Basic) and size.free_symbols)
