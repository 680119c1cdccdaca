"""Choose the example of the first run: no dynamic size of 1 if possible, and one name for unnamed axes that must be equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import torch
from torch import nn

from ..compat import trees as pytree
from ..errors import ToOnnxError
from ..guards.dims import DynamicDim
from ..trace.events import Arguments
from ..trace.refusal import NeedsRealValues, TraceUnsupported
from ..trace.run import trace
from ..trace.size_domain import SizeAssignment, SizeDomain

MOST = 6  # the most axes of equal size of which each subset is tried
GENERAL = 2  # replaces a dynamic size of 1


def generalise_sizes(model: nn.Module, dims: Sequence[DynamicDim], arguments: Arguments) -> Arguments:
    """Return the arguments with each dynamic size of 1 replaced by 2, if the model accepts them.

    At size 1, torch and libraries skip calls, and tensors broadcast that otherwise have to match.
    """
    shapes = _shapes(arguments)
    if all(shapes[dim.tensor][dim.axis] >= GENERAL for dim in dims):
        return arguments
    try:
        axes = SizeDomain.of(dims, pytree.tree_leaves(arguments))
        general = axes.clamp({symbol: max(size, GENERAL) for symbol, size in axes.example.items()})
        return axes.at(arguments, general) if general != axes.example and _runs(model, axes, arguments, general) else arguments
    except NeedsRealValues:
        raise
    except TraceUnsupported:
        return arguments


def tie_dims(model: nn.Module, dims: Sequence[DynamicDim], arguments: Arguments) -> list[DynamicDim]:
    """Return the axes with one name for those that must be equal, which torch.export finds from operators that compare sizes.

    Axes are tied only if the model runs with all of them longer, but not with a subset longer.
    """
    groups = list(_groups(dims, arguments))
    if not groups:
        return list(dims)
    try:
        axes = SizeDomain.of(dims, pytree.tree_leaves(arguments))
        if _runs(model, axes, arguments, axes.longer()):
            return list(dims)
        tied = [found for group in groups for found in _classes(model, axes, arguments, group)]
    except NeedsRealValues:
        raise
    except TraceUnsupported:
        return list(dims)
    names = {dim: found[0].name for found in tied for dim in found}
    return [replace(dim, name=names.get(dim, dim.name)) for dim in dims]


def _shapes(arguments: Arguments) -> dict[int, torch.Size]:
    return {id(leaf): leaf.shape for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)}


def _groups(dims: Sequence[DynamicDim], arguments: Arguments) -> Iterator[list[DynamicDim]]:
    """Yield the unnamed axes that have equal sizes in the example, if there are several."""
    shapes = _shapes(arguments)
    by_size: dict[int, list[DynamicDim]] = {}
    for dim in dims:
        if not dim.named and not dim.derived:
            by_size.setdefault(shapes[dim.tensor][dim.axis], []).append(dim)
    return (group for group in by_size.values() if 1 < len(group) <= MOST)


def _classes(model: nn.Module, axes: SizeDomain, arguments: Arguments, group: Sequence[DynamicDim]) -> Iterator[list[DynamicDim]]:
    """Partition a group into the axes that must be equal."""
    left = list(group)
    while left:
        first, *others = left
        sets = ([first, *chosen] for count in range(len(others) + 1) for chosen in combinations(others, count))
        found = next((tied for tied in sets if _runs(model, axes, arguments, _longer(axes, tied))), [first])
        yield found
        left = [dim for dim in left if dim not in found]


def _longer(axes: SizeDomain, dims: Sequence[DynamicDim]) -> SizeAssignment:
    symbols = [axes.sizes[dim.tensor, dim.axis] for dim in dims]
    return {**axes.example, **{symbol: axes.example[symbol] + 1 for symbol in symbols}}


def _runs(model: nn.Module, axes: SizeDomain, arguments: Arguments, setting: SizeAssignment) -> bool:
    try:
        trace(model, axes.at(arguments, setting))
    except ToOnnxError:
        raise
    except Exception:  # noqa: BLE001 - the model does not accept these sizes
        return False
    return True
