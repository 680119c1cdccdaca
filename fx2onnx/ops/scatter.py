"""Writing elements at computed positions: index_put, scatter, index_add, slice_scatter. Reading them is in index.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..ir.dtypes import BOOL, FLOAT, FLOATS, HALVES, INT32, INT64, TORCH
from ..ir.expressions import Number, Size
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates
from .create import make_full, make_range
from .index import Positions, broadcast_sizes, ensure_axis, numel, positions, restore_axes, sole_mask, true_at
from .shape import END, diagonal_order, diagonal_start, expand_to, permute_axes

Write = Callable[[Tensor, Tensor, str | None], Tensor]
REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min", "mean": "add"}


def append_scatter(
    g: Graph, op_type: str, x: Tensor, at: Tensor, values: Tensor, reduction: str | None = None, **attributes: Any
) -> Tensor:
    """Append ScatterND or ScatterElements; ONNX Runtime cannot reduce half precision, and can only add booleans.

    Args:
        at: for ScatterND (*shape, r), the positions along the first r axes of x; for ScatterElements with the rank of x.
        values: for ScatterND (*shape, *sizes of the other axes of x); for ScatterElements the sizes of `at`.
    """
    wide = FLOAT if reduction and x.dtype in HALVES else x.dtype
    if x.dtype == BOOL and reduction not in (None, "add"):
        wide = INT32
    made = g.op(op_type, g.cast(x, wide), at, g.cast(values, wide), reduction=reduction, **attributes)
    made = g.cast(made, x.dtype)
    return made if x.known_sizes is None else g.set_sizes(made, x.known_sizes)


@translates(aten.index_put.default, aten._unsafe_index_put.default, aten._index_put_impl.default)
def index_put(
    g: Graph, x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """index_put(x, indices, values, accumulate) → Where for one mask whose positions get the same values, else ScatterND."""
    # the values broadcast to the sizes of x[indices], see `Positions`
    values = g.set_sizes(g.cast(values, x.dtype), values.sizes)
    if (mask := sole_mask(x, indices)) and _same_everywhere(x, *mask, values):
        return _put_where(g, x, *mask, values, accumulate)
    at = Positions(g, x, indices)
    order = at.axes + at.rest
    matrix = at.matrix(g)
    made = append_scatter(
        g, "ScatterND", permute_axes(g, x, order), matrix, _values_at(g, x, at, matrix, values), "add" if accumulate else None
    )
    return restore_axes(g, made, order)


def _same_everywhere(x: Tensor, axis: int, mask: Tensor, values: Tensor) -> bool:
    """Return whether all positions of a mask get the same values."""
    after = x.rank - axis - mask.rank
    return mask.rank > 0 and (values.rank <= after or (values.rank == after + 1 and values.sizes[0] == 1))


def _put_where(g: Graph, x: Tensor, axis: int, mask: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    further = list(range(mask.rank, x.rank - axis))
    mask = g.cast(g.Unsqueeze(mask, further) if further else mask, BOOL)
    new = values if not accumulate else g.Or(x, values) if x.dtype == BOOL else g.Add(x, values)
    return g.Where(mask, new, x)


def _values_at(g: Graph, x: Tensor, at: Positions, matrix: Tensor, values: Tensor) -> Tensor:
    """Return the values for ScatterND (*shape of the positions, …), one for each written element."""
    before = [x.sizes[axis] for axis in at.before]
    after = [x.sizes[axis] for axis in at.rest[len(at.before) :]]
    if (shape := at.shape()) is not None:
        values = expand_to(g, values, (*before, *shape, *after))
    else:
        parts = [g.ints(before)] * bool(before) + [g.op("Shape", matrix, start=0, end=-1)] + [g.ints(after)] * bool(after)
        values = g.Expand(values, parts[0] if len(parts) == 1 else g.Concat(*parts, axis=0))
    return restore_axes(g, values, at.result_order())


@translates(aten.put.default)
def put(g: Graph, x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """put(x, index, source, accumulate) → ScatterND into the flattened tensor."""
    # source has as many elements as index, of any sizes
    count = numel(index.sizes)
    at = g.reshape_to(g.cast(index, INT64), (count, 1))
    flat = g.set_sizes(g.reshape_to(x, (numel(x.sizes),)), (numel(x.sizes),))
    made = append_scatter(g, "ScatterND", flat, at, g.reshape_to(source, (count,)), "add" if accumulate else None)
    return g.reshape_to(made, x.sizes)


@translates(aten.masked_scatter.default)
def masked_scatter(g: Graph, x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """masked_scatter(x, mask, source) → ScatterND of the first elements of the source, at the positions of NonZero."""
    sizes = broadcast_sizes([x, mask])
    x = ensure_axis(g, expand_to(g, x, sizes))
    found = true_at(g, ensure_axis(g, expand_to(g, g.set_sizes(g.cast(mask, BOOL), mask.sizes), sizes)))
    taken = g.Slice(g.reshape_to(source, (numel(source.sizes),)), [0], g.op("Shape", found, start=1, end=2), [0])
    return g.reshape_to(g.ScatterND(x, g.Transpose(found, perm=[1, 0]), g.cast(taken, x.dtype)), sizes)


@translates(aten.scatter.src, aten.scatter.value)
def scatter(g: Graph, x: Tensor, dim: int, index: Tensor, source: Operand) -> Tensor:
    """scatter(x, dim, index, source) → ScatterElements."""
    return _scatter_elements(g, x, dim, index, source, None)


@translates(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_reducing(g: Graph, x: Tensor, dim: int, index: Tensor, source: Operand, reduce: str) -> Tensor:
    """scatter(x, dim, index, source, reduce) → ScatterElements that adds or multiplies."""
    return _scatter_elements(g, x, dim, index, source, REDUCTIONS[reduce])


@translates(aten.scatter_add.default)
def scatter_add(g: Graph, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """scatter_add(x, dim, index, source) → ScatterElements that adds."""
    return _scatter_elements(g, x, dim, index, source, "add")


def _scatter_elements(g: Graph, x: Tensor, dim: int, index: Tensor, source: Operand, reduction: str | None) -> Tensor:
    """Append ScatterElements of the part of the source that the index covers.

    x, index and source have the same rank; along axes other than `dim` the index may be shorter than both.
    """
    if 0 in index.sizes:
        return x
    data, at = ensure_axis(g, x), positions(g, ensure_axis(g, index))
    updates = _updates(g, source, ensure_axis(g, index).sizes, x.dtype)
    made = append_scatter(g, "ScatterElements", data, at, updates, reduction, axis=dim)
    return made if x.rank else g.Squeeze(made, [0])


def _updates(g: Graph, source: Operand, sizes: Sequence[Size], dtype: ir.DataType) -> Tensor:
    """Return a number expanded to these sizes, or the part of a tensor in these sizes."""
    if not isinstance(source, Tensor):
        return make_full(g, sizes, source, dtype)
    source = ensure_axis(g, source)
    return source if source.known_sizes == tuple(sizes) else g.Slice(source, [0] * len(sizes), list(sizes))


@translates(aten.scatter_reduce.two)
def scatter_reduce(g: Graph, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True) -> Tensor:
    """scatter_reduce(x, dim, index, source, reduce, include_self) → ScatterElements; twice if x itself is not included."""
    if 0 in index.sizes:
        return x
    at, sizes = positions(g, ensure_axis(g, index)), ensure_axis(g, index).sizes

    def write(data: Tensor, values: Tensor, reduction: str | None) -> Tensor:
        return append_scatter(g, "ScatterElements", data, at, values, reduction, axis=dim)

    made = _scatter_reduce(g, write, ensure_axis(g, x), _updates(g, source, sizes, x.dtype), sizes, reduce, include_self)
    return made if x.rank else g.Squeeze(made, [0])


def _scatter_reduce(g: Graph, write: Write, x: Tensor, values: Tensor, sizes: Sequence[Size], reduce: str, include_self: bool) -> Tensor:
    """Return the reduction of the values written at each position, including the old value if `include_self`.

    Args:
        sizes: the sizes of the written values.
    """
    start = x if include_self else write(x, make_full(g, sizes, _nothing(reduce, x.dtype), x.dtype), None)
    made = write(start, values, REDUCTIONS[reduce])
    if reduce == "mean":
        ones = make_full(g, x.sizes, 1, x.dtype)
        begun = ones if include_self else write(ones, make_full(g, sizes, 0, x.dtype), None)
        return _quotient(g, made, g.Max(write(begun, make_full(g, sizes, 1, x.dtype), "add"), 1))
    if reduce in ("amax", "amin") and x.dtype in FLOATS:
        invalid = write(g.set_sizes(g.IsNaN(start), x.sizes), g.IsNaN(values), "add")
        return g.Where(invalid, g.const(torch.nan, x.dtype), made)
    return made


def _quotient(g: Graph, total: Tensor, count: Tensor) -> Tensor:
    """Return a mean; for integers rounded down."""
    if total.dtype in FLOATS:
        return g.Div(total, count)
    return g.Div(g.Sub(total, g.Mod(total, count)), count)


def _nothing(reduce: str, dtype: ir.DataType) -> float:
    """Return the neutral element of a reduction."""
    if REDUCTIONS[reduce] in ("add", "mul"):
        return 0 if REDUCTIONS[reduce] == "add" else 1
    if dtype in FLOATS:
        return float("-inf" if reduce == "amax" else "inf")
    if dtype == BOOL:
        return float(reduce == "amin")
    limits = torch.iinfo(TORCH[dtype])
    return limits.min if reduce == "amax" else limits.max


def put_along(g: Graph, x: Tensor, dim: int, at: Tensor, values: Tensor, reduction: str | None = None) -> Tensor:
    """Write `values` (…, n, …) at positions (n,) along `dim`: ScatterND, with the axis moved to the front."""
    axis = dim % x.rank
    order = [axis, *[i for i in range(x.rank) if i != axis]]
    rows = g.Unsqueeze(g.cast(at, INT64), [1])
    made = append_scatter(g, "ScatterND", permute_axes(g, x, order), rows, permute_axes(g, values, order), reduction)
    return restore_axes(g, made, order)


@translates(aten.index_copy.default)
def index_copy(g: Graph, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """index_copy(x, dim, index, source) → ScatterND."""
    return _put_rows(g, x, dim, index, source, None)


@translates(aten.index_add.default)
def index_add(g: Graph, x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Number = 1) -> Tensor:
    """index_add(x, dim, index, source, alpha) → ScatterND that adds."""
    # x: (…, size, …), index: (n,), source: (…, n, …)
    scaled = source if alpha == 1 else g.set_sizes(g.Mul(source, alpha), source.sizes)
    return _put_rows(g, x, dim, index, scaled, "add")


def _put_rows(g: Graph, x: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str | None) -> Tensor:
    """Write like `put_along`, also for a tensor, an index or a source without axes."""
    index, source = ensure_axis(g, index), ensure_axis(g, source)
    made = put_along(g, ensure_axis(g, x), dim, index, source, reduction)
    return made if x.rank else g.Squeeze(made, [0])


@translates(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(g: Graph, x: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """index_fill(x, dim, index, value) → ScatterND of the expanded value."""
    data, index = ensure_axis(g, x), ensure_axis(g, index)
    axis = dim % data.rank
    values = make_full(g, [*data.sizes[:axis], index.sizes[0], *data.sizes[axis + 1 :]], value, x.dtype)
    made = put_along(g, data, dim, index, values)
    return made if x.rank else g.Squeeze(made, [0])


@translates(aten.index_reduce.default)
def index_reduce(g: Graph, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True) -> Tensor:
    """index_reduce(x, dim, index, source, reduce, include_self) → ScatterND, with the axis moved to the front."""
    data, source, index = ensure_axis(g, x), ensure_axis(g, source), ensure_axis(g, index)
    axis = dim % data.rank
    order = [axis, *[i for i in range(data.rank) if i != axis]]
    rows, values = g.Unsqueeze(g.cast(index, INT64), [1]), permute_axes(g, source, order)

    def write(data: Tensor, values: Tensor, reduction: str | None) -> Tensor:
        return append_scatter(g, "ScatterND", data, rows, values, reduction)

    made = _scatter_reduce(g, write, permute_axes(g, data, order), values, values.sizes, reduce, include_self)
    made = restore_axes(g, g.set_sizes(made, [data.sizes[i] for i in order]), order)
    return made if x.rank else g.Squeeze(made, [0])


@translates(aten.slice_scatter.default)
def slice_scatter(
    g: Graph, x: Tensor, source: Tensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1
) -> Tensor:
    """slice_scatter(x, source, dim, start, end, step) → ScatterND at the positions of the slice."""
    if source.known_sizes == x.sizes and step == 1:
        return g.cast(source, x.dtype)
    every = make_range(g, x.sizes[dim])
    return put_along(g, x, dim, g.Slice(every, [start or 0], [END if end is None else end], [0], [step]), source)


@translates(aten.select_scatter.default)
def select_scatter(g: Graph, x: Tensor, source: Tensor, dim: int, index: Size) -> Tensor:
    """select_scatter(x, source, dim, index) → ScatterND at one position."""
    axis = dim % x.rank
    row = g.set_sizes(g.Unsqueeze(source, [axis]), [*source.sizes[:axis], 1, *source.sizes[axis:]])
    return put_along(g, x, dim, g.ints([index]), row)


@translates(aten.diagonal_scatter.default)
def diagonal_scatter(g: Graph, x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """diagonal_scatter(x, source, offset, dim1, dim2) → ScatterND into the flattened matrix, at steps of a row and a column."""
    order = diagonal_order(x, dim1, dim2)
    moved = permute_axes(g, x, order)
    *rest, rows, columns = moved.sizes
    at = make_range(g, source.sizes[-1], diagonal_start(offset, columns), columns + 1)
    flat = g.set_sizes(g.reshape_to(moved, (*rest, rows * columns)), (*rest, rows * columns))
    made = put_along(g, flat, -1, at, source)
    return restore_axes(g, g.set_sizes(g.reshape_to(made, moved.sizes), moved.sizes), order)
