"""Looking up and counting values: bucketize, isin, histograms. Sorting is in sort.py."""

from __future__ import annotations

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import FLOATS, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates
from .create import make_full
from .index import numel
from .scatter import append_scatter


@translates(aten.bucketize.Tensor, aten.bucketize.Scalar)
def bucketize(g: Graph, x: Operand, boundaries: Tensor, out_int32: bool = False, right: bool = False) -> Tensor:
    """bucketize(x, boundaries, right) → the number of boundaries below x: a comparison with each, summed."""
    return _count_below(g, boundaries, x, right)


@translates(aten.searchsorted.Tensor, aten.searchsorted.Scalar)
def searchsorted(
    g: Graph,
    sequence: Tensor,
    x: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """searchsorted(sequence, x, right, side, sorter) → the number of elements below x: a comparison with each, summed."""
    if sorter is not None:
        sequence = g.set_sizes(g.GatherElements(sequence, sorter, axis=-1), sequence.sizes)
    return _count_below(g, sequence, x, right or side == "right")


def _count_below(g: Graph, sequence: Tensor, x: Operand, right: bool) -> Tensor:
    """Return how many elements are less than x, or not greater if `right`; in torch all are less than NaN."""
    stacked = sequence.rank > 1
    sequence, x = g.promote(sequence, x)
    others = g.Unsqueeze(sequence, [-2]) if stacked else sequence
    above = g.op("Greater" if right else "GreaterOrEqual", others, g.Unsqueeze(x, [-1]))
    return _sum_of_last(g, g.Not(above), len(g.sizes))


def _sum_of_last(g: Graph, truth: Tensor, axis: int) -> Tensor:
    """Return how many are true along the last axis, by its number: ONNX Runtime keeps an empty axis −1."""
    return g.ReduceSum(g.cast(truth, INT64), [axis], keepdims=0)


@translates(aten.isin.Tensor_Tensor, aten.isin.Tensor_Scalar, aten.isin.Scalar_Tensor)
def isin(g: Graph, x: Operand, others: Operand, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """isin(x, others, invert) → Equal to each of the others, summed and compared with 0."""
    if not isinstance(others, Tensor):
        x, others = g.promote(x, others)
        found = g.Equal(x, others)
        return g.Not(found) if invert else found
    flat = g.set_sizes(g.reshape_to(others, (numel(others.sizes),)), (numel(others.sizes),))
    x, flat = g.promote(x, flat)
    count = _sum_of_last(g, g.Equal(g.Unsqueeze(x, [-1]), flat), len(g.sizes))
    return g.Equal(count, 0) if invert else count


@translates(aten.histc.default)
def histc(g: Graph, x: Tensor, bins: Size = 100, min: float = 0, max: float = 0) -> Tensor:
    """histc(x, bins, min, max) → the bin of each element by its distance from the minimum, and ScatterElements that adds 1."""
    flat = g.reshape_to(x, (numel(x.sizes),))
    low, high = _range(g, flat, min, max)
    inside = g.And(g.GreaterOrEqual(flat, low), g.LessOrEqual(flat, high))
    place = g.Div(g.Mul(g.Sub(flat, low), g.scalar(bins, x.dtype)), g.Sub(high, low))
    place = g.Min(g.cast(g.Where(inside, place, g.const(0, x.dtype)), INT64), g.scalar(bins - 1, INT64))
    return _counted_at(g, place, g.cast(inside, x.dtype), g.ints([bins]))


def _range(g: Graph, x: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """Return the given range; if it is empty, that of the elements, extended by 1 on both sides if they are all equal."""
    if low != high:
        return g.const(low, x.dtype), g.const(high, x.dtype)
    if (low, high) != (0, 0) or x.dtype not in FLOATS:
        raise Untranslated("min == max is supported only if both are 0 and the input is floating-point")
    least, most = g.ReduceMin(x, keepdims=0), g.ReduceMax(x, keepdims=0)
    same = g.cast(g.Equal(least, most), x.dtype)
    return g.Sub(least, same), g.Add(most, same)


@translates(aten.bincount.default)
def bincount(g: Graph, x: Tensor, weights: Tensor | None = None, minlength: Size = 0) -> Tensor:
    """bincount(x, weights, minlength) → ScatterElements that adds 1, or the weights, into max(x) + 1 zeros."""
    x, sizes = g.cast(x, INT64), x.sizes
    size = g.Add(g.ReduceMax(g.Concat(x, g.ints([minlength - 1]), axis=0), [0]), 1)
    values = make_full(g, sizes, 1, INT64) if weights is None else g.cast(weights, g.dtype)
    return _counted_at(g, x, values, size)


def _counted_at(g: Graph, at: Tensor, values: Tensor, size: Tensor) -> Tensor:
    zeros = g.Expand(g.const(0, values.dtype), size)
    return append_scatter(g, "ScatterElements", zeros, at, values, "add", axis=0)
