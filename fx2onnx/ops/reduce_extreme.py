"""Largest, smallest and middle elements along axes, and their positions. The larger of two tensors is in pointwise.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..compat.operators import aten
from ..ir.dtypes import BOOL, FLOATS, INT32, INT64, UINT32
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .reduce import Dims, append_reduce, axes_of, flatten_axes, half_rounded_up, left_over, replace_nan, truth

COMPARED_AS_INT64 = (INT64, UINT32)


def extreme(g: Graph, op_type: str, x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    """Append ReduceMax or ReduceMin; the result is NaN if an element is, which ONNX Runtime ignores.

    For int64, ArgMax or ArgMin and GatherElements are used, because ONNX Runtime's reductions compare some numbers from 2^31 on
    incorrectly.
    """
    if x.dtype == BOOL:
        return truth(g, op_type, x, axes, keepdim)
    if x.dtype in COMPARED_AS_INT64 and x.rank:
        rows, _ = flatten_axes(g, g.set_sizes(g.cast(x, INT64), x.sizes), axes)
        first = g.op(op_type.replace("Reduce", "Arg"), rows, axis=rows.rank - 1, keepdims=1)
        sizes = left_over(x, axes, keepdim)
        found = g.set_sizes(g.GatherElements(rows, first, axis=rows.rank - 1), [*rows.sizes[:-1], 1])
        return g.set_sizes(g.cast(g.reshape_to(found, sizes), x.dtype), sizes)
    found = append_reduce(g, op_type, x, axes, keepdim)
    return found if x.dtype not in FLOATS or x.rank == 0 else nan_passed_on(g, x, found, axes, keepdim)


def nan_passed_on(g: Graph, x: Tensor, found: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    """Return `found`, or NaN if an element is NaN, which is when the sum of absolute values is NaN."""
    size = append_reduce(g, "ReduceL1", x, axes, keepdim)
    return g.set_sizes(g.Where(g.IsNaN(size), size, found), size.sizes)


def position(g: Graph, op_type: str, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """Append ArgMax or ArgMin along an axis, or over all elements; the position is that of the first equal element, or the first NaN."""
    if x.rank == 0:
        return g.const(0, INT64)
    if dim is not None or x.rank == 1:
        return _position(g, op_type, x, (dim or 0) % x.rank, keepdim)
    found = g.set_sizes(_position(g, op_type, _flat(g, x), 0, False), ())
    return g.reshape_to(found, [1] * x.rank if keepdim else [])


def _position(g: Graph, op_type: str, x: Tensor, axis: int, keepdim: bool) -> Tensor:
    found = g.op(op_type, x, axis=axis, keepdims=int(keepdim))
    if x.dtype not in FLOATS:
        return found
    first_nan = g.ArgMax(g.cast(g.IsNaN(x), INT32), axis=axis, keepdims=int(keepdim))
    return g.set_sizes(g.Where(g.IsNaN(append_reduce(g, "ReduceL1", x, [axis], keepdim)), first_nan, found), left_over(x, [axis], keepdim))


@translates(aten.amax.default, aten.max.default)
def amax(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """amax(x, dim?, keepdim) → ReduceMax; for floats also ReduceL1, IsNaN, Where, for NaN."""
    return extreme(g, "ReduceMax", x, axes_of(x, dim), keepdim)


@translates(aten.amin.default, aten.min.default)
def amin(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """amin(x, dim?, keepdim) → ReduceMin; for floats also ReduceL1, IsNaN, Where, for NaN."""
    return extreme(g, "ReduceMin", x, axes_of(x, dim), keepdim)


@translates(aten.aminmax.default)
def aminmax(g: Graph, x: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """aminmax(x, dim?, keepdim) → amin and amax."""
    return amin(g, x, dim, keepdim), amax(g, x, dim, keepdim)


@translates(aten.max.dim)
def max_along(g: Graph, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """max(x, dim, keepdim) → amax, and argmax if the index is used."""
    return amax(g, x, dim, keepdim), position(g, "ArgMax", x, dim, keepdim)


@translates(aten.min.dim)
def min_along(g: Graph, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """min(x, dim, keepdim) → amin, and argmin if the index is used."""
    return amin(g, x, dim, keepdim), position(g, "ArgMin", x, dim, keepdim)


@translates(aten.argmax.default)
def argmax(g: Graph, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """argmax(x, dim?, keepdim) → ArgMax; for floats also ArgMax of IsNaN, and Where, because NaN counts as the largest."""
    return position(g, "ArgMax", x, dim, keepdim)


@translates(aten.argmin.default)
def argmin(g: Graph, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """argmin(x, dim?, keepdim) → ArgMin; for floats also ArgMax of IsNaN, and Where, because NaN counts as the smallest."""
    return position(g, "ArgMin", x, dim, keepdim)


def ascending(g: Graph, x: Tensor, axis: int, number: object) -> tuple[Tensor, Tensor]:
    """Return the `number` smallest elements along an axis in ascending order, NaN last, and their positions: TopK."""
    return g.TopK(replace_nan(g, x, math.inf), [number], axis=axis, largest=0, outputs=2)


@translates(aten.median.dim)
def median_along(g: Graph, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """median(x, dim, keepdim) → the last of TopK of the smaller half; the first of equal elements, and any index for NaN."""
    if x.rank == 0:
        return x, g.const(0, INT64)
    axis = dim % x.rank
    values, places = ascending(g, x, axis, half_rounded_up(x.sizes[axis]))
    last = g.const([-1] if keepdim else -1, INT64)
    value = g.Gather(values, last, axis=axis)
    if x.dtype in FLOATS:
        value = nan_passed_on(g, x, value, [axis], keepdim)
    return value, g.Gather(places, last, axis=axis)


@translates(aten.median.default)
def median(g: Graph, x: Tensor) -> Tensor:
    """median(x) → the median of all elements."""
    return median_along(g, _flat(g, x), 0)[0]


@translates(aten.nanmedian.dim)
def nanmedian_along(g: Graph, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """nanmedian(x, dim, keepdim) → TopK of all, and the element at (numbers − 1) / 2: IsNaN, ReduceSum, GatherElements."""
    if x.rank == 0 or x.dtype not in FLOATS:
        return median_along(g, x, dim, keepdim)
    axis = dim % x.rank
    places = ascending(g, x, axis, x.sizes[axis])[1]
    numbers = g.ReduceSum(g.cast(g.Not(g.IsNaN(x)), INT64), [axis], keepdims=1)
    middle = g.Div(g.Max(g.Sub(numbers, 1), 0), 2)
    place = g.GatherElements(places, middle, axis=axis)
    sizes = left_over(x, [axis], True)
    found = g.set_sizes(g.GatherElements(x, place, axis=axis), sizes), g.set_sizes(place, sizes)
    return found if keepdim else tuple(g.Squeeze(value, [axis]) for value in found)


@translates(aten.nanmedian.default)
def nanmedian(g: Graph, x: Tensor) -> Tensor:
    """nanmedian(x) → the median of all elements that are not NaN."""
    return nanmedian_along(g, _flat(g, x), 0)[0]


def _flat(g: Graph, x: Tensor) -> Tensor:
    return x if x.rank == 1 else g.set_sizes(g.Reshape(x, [-1]), [math.prod(x.sizes)])


@translates(aten.quantile.default, aten.quantile.scalar)
def quantile(
    g: Graph, x: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Tensor:
    """quantile(x, q, dim?, keepdim, interpolation) → TopK of all, and Gather at q·(n − 1), rounded or interpolated."""
    shown = x if dim is not None and x.rank else _flat(g, x)
    axis = (dim or 0) % shown.rank
    order = [i for i in range(shown.rank) if i != axis] + [axis]
    last = shown if order == sorted(order) else g.set_sizes(g.Transpose(shown, perm=order), [shown.sizes[i] for i in order])
    ordered = ascending(g, last, last.rank - 1, last.sizes[-1])[0]
    rank = g.Mul(g.cast(q, x.dtype), g.scalar(last.sizes[-1] - 1, x.dtype))
    found = _between(g, ordered, rank, interpolation)
    single = not isinstance(q, Tensor) or q.rank == 0
    found = nan_passed_on(g, last, found, [last.rank - 1], not single)
    if not single and last.rank > 1:
        found = g.Transpose(found, perm=[last.rank - 1, *range(last.rank - 1)])
    return g.reshape_to(found, g.sizes) if keepdim else found


def _between(g: Graph, ordered: Tensor, rank: Tensor, interpolation: str) -> Tensor:
    """Return the element at a rank that may be fractional."""
    rounding = {"lower": "Floor", "higher": "Ceil", "nearest": "Round"}.get(interpolation)
    if rounding:
        return g.Gather(ordered, g.cast(g.op(rounding, rank), INT64), axis=-1)
    below = g.Floor(rank)
    low, high = (g.Gather(ordered, g.cast(at, INT64), axis=-1) for at in (below, g.Ceil(rank)))
    weight = g.const(0.5, rank.dtype) if interpolation == "midpoint" else g.Sub(rank, below)
    return g.Add(low, g.Mul(weight, g.Sub(high, low)))
