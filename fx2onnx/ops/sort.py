"""Ordering of elements: sort, topk, kthvalue, mode, unique. Searching in sorted tensors is in search.py."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..compat.operators import aten
from ..ir.dtypes import BOOL, FLOAT, FLOATS, HALVES, INT32, INT64, TORCH
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .create import make_range
from .index import ensure_axis, numel
from .shape import END


@translates(aten.topk.default)
def topk(g: Graph, x: Tensor, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sequence[Tensor]:
    """topk(x, k, dim, largest, sorted) → TopK; the position of NaN depends on ONNX Runtime."""
    if x.rank == 0:
        return x, g.const(0, INT64)
    return g.TopK(x, [k], axis=dim, largest=largest, sorted=sorted, outputs=2)


def sort_along(g: Graph, x: Tensor, dim: int, descending: bool, count: Size | None = None) -> Sequence[Tensor]:
    """Return the elements along an axis (or the first `count`) in stable order, with NaN as the largest, and their old positions.

    TopK is stable, but its order with NaN is undefined. Therefore floats are sorted by a key with infinity instead of NaN, and the largest
    finite number instead of infinity.
    """
    size = [x.sizes[dim] if count is None else count]
    if x.dtype not in FLOATS:
        return g.TopK(x, size, axis=dim, largest=descending, outputs=2)
    key = g.cast(x, FLOAT) if x.dtype in HALVES else x
    key = g.Where(g.IsNaN(key), g.const(torch.inf, key.dtype), g.Min(key, torch.finfo(TORCH[key.dtype]).max))
    _, order = g.TopK(key, size, axis=dim, largest=descending, outputs=2)
    return g.GatherElements(x, order, axis=dim), order


@translates(aten.sort.default)
def sort(g: Graph, x: Tensor, dim: int = -1, descending: bool = False) -> Sequence[Tensor]:
    """sort(x, dim, descending) → TopK of all; for floats by a key without NaN."""
    return sort_along(g, x, dim, descending) if x.rank else (x, g.const(0, INT64))


@translates(aten.sort.stable)
def sort_stable(g: Graph, x: Tensor, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Sequence[Tensor]:
    """sort(x, stable, dim, descending) → TopK of all, which is stable."""
    return sort(g, x, dim, descending)


@translates(aten.msort.default)
def msort(g: Graph, x: Tensor) -> Tensor:
    """msort(x) → TopK of all along the first axis."""
    return sort(g, x, 0)[0]


@translates(aten.argsort.default)
def argsort(g: Graph, x: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """argsort(x, dim, descending) → the positions of TopK of all."""
    return sort(g, x, dim, descending)[1]


@translates(aten.argsort.stable)
def argsort_stable(g: Graph, x: Tensor, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    """argsort(x, stable, dim, descending) → the positions of TopK of all."""
    return sort(g, x, dim, descending)[1]


@translates(aten.kthvalue.default)
def kthvalue(g: Graph, x: Tensor, k: Size, dim: int = -1, keepdim: bool = False) -> Sequence[Tensor]:
    """kthvalue(x, k, dim, keepdim) → the last of the k smallest of TopK."""
    if x.rank == 0:
        return x, g.const(0, INT64)
    last = g.const([-1] if keepdim else -1, INT64)
    return [g.Gather(part, last, axis=dim) for part in sort_along(g, x, dim, False, k)]


@translates(aten.mode.default)
def mode(g: Graph, x: Tensor, dim: int = -1, keepdim: bool = False) -> Sequence[Tensor]:
    """mode(x, dim, keepdim) → the last element of the first longest run after sorting: Equal to all others, ReduceSum, ArgMax."""
    if x.rank == 0:
        return x, g.const(0, INT64)
    axis = dim % x.rank
    values, order = sort_along(g, x, axis, False)
    same = g.Equal(g.Unsqueeze(values, [axis + 1]), g.Unsqueeze(values, [axis]))
    lengths = g.ReduceSum(g.cast(same, INT32), [axis + 1], keepdims=0)
    further = g.Max(g.Sub(g.ReduceMax(lengths, [axis], keepdims=1), 1), 0)  # NaN is not equal to itself
    last = g.Add(g.ArgMax(lengths, axis=axis, keepdims=1), g.cast(further, INT64))
    found = [g.GatherElements(part, last, axis=axis) for part in (values, order)]
    return found if keepdim else [g.Squeeze(part, [axis]) for part in found]


@translates(aten._unique2.default, aten._unique.default)
def unique(g: Graph, x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Sequence[Tensor]:
    """unique(x) → Unique, with the inverse and the counts; floats by sorting, because each NaN is distinct."""
    if x.dtype in FLOATS:
        flat = _flat(g, x)
        values, order = sort_along(g, flat, 0, False)
        found, group, counts = _runs(g, values, numel(x.sizes))
        inverse = g.ScatterElements(order, order, group, axis=0)
    else:
        found, _, inverse, counts = g.Unique(x, sorted=1, outputs=4)
        inverse.dtype = counts.dtype = INT64
    results = [found, g.reshape_to(inverse, x.sizes) if return_inverse else _none(g), counts if return_counts else _none(g)]
    return results[: len(g.at.meta["val"])]


@translates(aten.unique_consecutive.default)
def unique_consecutive(
    g: Graph, x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Sequence[Tensor]:
    """unique_consecutive(x) → Compress of elements that differ from the one before, with the inverse and the counts."""
    if dim is not None and x.rank > 1:
        return _consecutive_rows(g, x, dim % x.rank)
    found, group, counts = _runs(g, _flat(g, x), numel(x.sizes))
    return found, g.reshape_to(group, x.sizes) if return_inverse else _none(g), counts if return_counts else _none(g)


@translates(aten.unique_dim.default)
def unique_dim(
    g: Graph, x: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Sequence[Tensor]:
    """unique(x, dim) → Unique along an axis, with the inverse and the counts."""
    found, _, inverse, counts = g.Unique(x, axis=dim, sorted=1, outputs=4)
    inverse.dtype = counts.dtype = INT64
    return found, inverse, counts


def _consecutive_rows(g: Graph, x: Tensor, axis: int) -> Sequence[Tensor]:
    others = [i for i in range(x.rank) if i != axis]
    differs = g.Not(g.Equal(g.Slice(x, [1], [END], [axis]), g.Slice(x, [0], [-1], [axis])))
    differs = g.cast(g.ReduceSum(g.cast(differs, INT64), others, keepdims=0), BOOL)
    begins, group, counts = _groups(g, differs, x.sizes[axis])
    return g.Compress(x, begins, axis=axis), group, counts


def _runs(g: Graph, x: Tensor, size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first element of each run of equal elements, the run of each element, and the lengths of the runs."""
    differs = g.Not(g.Equal(g.Slice(x, [1], [END], [0]), g.Slice(x, [0], [-1], [0])))
    begins, group, counts = _groups(g, differs, size)
    return g.Compress(x, begins, axis=0), group, counts


def _groups(g: Graph, differs: Tensor, size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """Return where the runs start, the run of each element, and the lengths of the runs; `differs` compares neighbours."""
    begins = g.Slice(g.Concat(g.const([True], BOOL), differs, axis=0), [0], [size], [0])
    group = g.Sub(g.CumSum(g.cast(begins, INT64), g.const(0, INT64)), 1)
    starts = g.Compress(make_range(g, size), begins, axis=0)
    return begins, group, g.Sub(g.Concat(g.Slice(starts, [1], [END], [0]), g.ints([size]), axis=0), starts)


def _flat(g: Graph, x: Tensor) -> Tensor:
    return g.set_sizes(g.reshape_to(ensure_axis(g, x), (numel(x.sizes),)), (numel(x.sizes),))


def _none(g: Graph) -> Tensor:
    return g.const([], INT64)
