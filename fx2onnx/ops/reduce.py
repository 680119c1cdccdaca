"""Sums, products, means, variances and any/all over axes. See also reduce_extreme.py, reduce_norm.py and cumulative.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import onnx_ir as ir
import sympy
import torch

from ..compat.operators import aten
from ..compat.symbols import FloorDiv
from ..ir.dtypes import BOOL, FLOAT, FLOATS, HALVES, INT8, INT16, INT32, INT64, TORCH, UINT8
from ..ir.expressions import Number, Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .cumulative import products, without

Dims = int | Sequence[int] | None
NARROW = (BOOL, UINT8, INT8, INT16, INT32)
SAME = ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceLogSumExp")
OF_EACH: dict[str, Callable[[Graph, Tensor], Tensor]] = {
    **dict.fromkeys(SAME, lambda g, x: x),
    "ReduceL1": lambda g, x: g.set_sizes(g.Abs(x), x.sizes),
    "ReduceL2": lambda g, x: g.set_sizes(g.Abs(x), x.sizes),
    "ReduceSumSquare": lambda g, x: g.set_sizes(g.Mul(x, x), x.sizes),
}
"""The results of reductions over no axes, for each element."""


def axes_of(x: Tensor, dims: Dims) -> list[int]:
    """Return the axes, counted from the front and sorted; None and [] mean all axes."""
    given = [dims] if isinstance(dims, int) else dims
    if not given:
        return list(range(x.rank))
    return sorted(dim % x.rank for dim in given) if x.rank else []


def left_over(x: Tensor, axes: Sequence[int], keepdim: bool) -> tuple[Size, ...]:
    """Return the sizes of `x` reduced over these axes."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(x.sizes) if keepdim or axis not in axes)


def never_empty(x: Tensor, axes: Sequence[int]) -> bool:
    """Return whether these axes can never be empty."""
    return all(isinstance(x.sizes[axis], int) and x.sizes[axis] > 0 for axis in axes)


def precise(g: Graph, x: Tensor) -> Tensor:
    """Return x in the dtype that torch adds in: float32 for half precision."""
    return g.cast(x, FLOAT) if x.dtype in HALVES else x


def append_reduce(g: Graph, op_type: str, x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    """Append a reduction over these axes; no axes mean an elementwise function here, because ONNX would reduce all or none."""
    if not axes:
        return OF_EACH[op_type](g, x)
    made = g.op(op_type, x, list(axes) if len(axes) < x.rank else None, keepdims=int(keepdim))
    return g.set_sizes(made, left_over(x, axes, keepdim))


def total(g: Graph, x: Tensor, axes: Sequence[int], keepdim: bool = False) -> Tensor:
    """Append ReduceSum; for int64 a product with ones, because ONNX Runtime's ReduceSum uses float64 and is inexact above 2⁵³."""
    if x.dtype != INT64 or x.rank == 0:
        return append_reduce(g, "ReduceSum", x, axes, keepdim)
    rows, length = flatten_axes(g, x, axes)
    ones = g.const(torch.ones(length, 1), INT64) if isinstance(length, int) else g.Expand(g.const([[1]], INT64), [length, 1])
    sizes = left_over(x, axes, keepdim)
    return g.set_sizes(g.reshape_to(g.set_sizes(g.MatMul(rows, ones), [*rows.sizes[:-1], 1]), sizes), sizes)


def flatten_axes(g: Graph, x: Tensor, axes: Sequence[int]) -> tuple[Tensor, Size]:
    """Return the tensor with these axes merged into the last one, after at least one other axis, and the size of that axis."""
    kept = [axis for axis in range(x.rank) if axis not in axes]
    order = [*kept, *axes]
    last = x if order == sorted(order) else g.Transpose(x, perm=order)
    length = math.prod(x.sizes[axis] for axis in axes)
    rows = [*([x.sizes[axis] for axis in kept] or [1]), length]
    return g.set_sizes(g.reshape_to(g.set_sizes(last, [x.sizes[axis] for axis in order]), rows), rows), length


def count(g: Graph, x: Tensor, axes: Sequence[int], keepdim: bool, dtype: ir.DataType) -> int | Tensor:
    """Return the number of elements along the axes: an integer, or a tensor that broadcasts with the reduced tensor."""
    number = math.prod(x.sizes[axis] for axis in axes)
    if isinstance(number, int) or number.is_number:
        return int(number)
    return g.cast(g.ints([number]), dtype) if left_over(x, axes, keepdim) else g.scalar(number, dtype)


def mean_of(g: Graph, x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    """Append ReduceMean; ReduceSum and Div if the axes may be empty, because ONNX Runtime's mean is then 0 instead of NaN."""
    if never_empty(x, axes):
        return append_reduce(g, "ReduceMean", x, axes, keepdim)
    x = precise(g, x)
    return g.Div(append_reduce(g, "ReduceSum", x, axes, keepdim), count(g, x, axes, keepdim, x.dtype))


@translates(aten.sum.default, aten.sum.dim_IntList)
def sum_(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """sum(x, dim?, keepdim, dtype) → ReduceSum in the dtype of the result; MatMul with ones if int64 could be inexact."""
    axes, wide = axes_of(x, dim), INT64 if g.dtype == INT32 else g.dtype  # ONNX Runtime's sum of int32 saturates, torch's wraps
    if x.dtype in NARROW:
        return append_reduce(g, "ReduceSum", g.cast(x, wide), axes, keepdim)
    return total(g, g.cast(x, wide), axes, keepdim)


@translates(aten.nansum.default)
def nansum(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """nansum(x, dim?, keepdim, dtype) → sum of Where(IsNaN(x), 0, x)."""
    return sum_(g, replace_nan(g, x), dim, keepdim)


def replace_nan(g: Graph, x: Tensor, instead: float = 0) -> Tensor:
    """Return x with NaN replaced by another number."""
    if x.dtype not in FLOATS:
        return x
    return g.set_sizes(g.Where(g.IsNaN(x), g.scalar(instead, x.dtype), x), x.sizes)


@translates(aten.nanmean.default)
def nanmean(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """nanmean(x, dim?, keepdim, dtype) → the sum without NaN, divided by the number of other elements: IsNaN, Where, ReduceSum, Div."""
    x, axes = precise(g, g.cast(x, g.dtype)), axes_of(x, dim)
    numbers = g.set_sizes(g.cast(g.Not(g.IsNaN(x)), x.dtype), x.sizes)
    return g.Div(append_reduce(g, "ReduceSum", replace_nan(g, x), axes, keepdim), append_reduce(g, "ReduceSum", numbers, axes, keepdim))


@translates(aten.mean.default, aten.mean.dim)
def mean(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """mean(x, dim?, keepdim, dtype) → ReduceMean; ReduceSum and Div if the axes may be empty."""
    return mean_of(g, g.cast(x, g.dtype), axes_of(x, dim), keepdim)


@translates(aten.prod.default, aten.prod.dim_int)
def prod(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """prod(x, dim?, keepdim, dtype) → ReduceProd; for integers a Scan of Mul, because ONNX Runtime's ReduceProd is inexact above 2⁵³."""
    axes, truths = axes_of(x, dim), x.dtype == BOOL
    x = g.cast(x, g.dtype)
    if truths or x.dtype in FLOATS or x.rank == 0:
        return append_reduce(g, "ReduceProd", x, axes, keepdim)
    line = g.set_sizes(g.Reshape(x, [-1]), [math.prod(x.sizes)]) if dim is None and x.rank > 1 else x
    product = products(g, line, axes[0])[0]
    return g.reshape_to(g.set_sizes(product, without(line, axes[0])), left_over(x, axes, keepdim))


@translates(aten.any.default, aten.any.dim, aten.any.dims, aten._is_any_true.default)
def any_(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """any(x, dim?, keepdim) → ReduceMax of booleans; only the cast for dim=[]."""
    return g.cast(x, BOOL) if dim == [] else truth(g, "ReduceMax", x, axes_of(x, dim), keepdim)


@translates(aten.all.default, aten.all.dim, aten.all.dims, aten._is_all_true.default)
def all_(g: Graph, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """all(x, dim?, keepdim) → ReduceMin of booleans; only the cast for dim=[]."""
    return g.cast(x, BOOL) if dim == [] else truth(g, "ReduceMin", x, axes_of(x, dim), keepdim)


def truth(g: Graph, op_type: str, x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    """Append ReduceMax or ReduceMin of booleans; of uint8 before opset 20 and if the axes may be empty, for ONNX Runtime."""
    flags = g.cast(x, BOOL)
    if g.opset < 20 or not never_empty(x, axes):
        flags = g.cast(flags, UINT8)
    return g.cast(append_reduce(g, op_type, g.set_sizes(flags, x.sizes), axes, keepdim), BOOL)


@translates(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_nonzero(g: Graph, x: Tensor, dim: Dims = None) -> Tensor:
    """count_nonzero(x, dim?) → ReduceSum of Cast(x to bool)."""
    return append_reduce(g, "ReduceSum", g.cast(g.cast(x, BOOL), INT64), axes_of(x, dim), False)


@translates(aten.logsumexp.default, aten.special_logsumexp.default)
def logsumexp(g: Graph, x: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """logsumexp(x, dim, keepdim) → ReduceMax, Clip, Sub, ReduceLogSumExp, Add, see `log_of_sum`."""
    return log_of_sum(g, g.cast(x, g.dtype), axes_of(x, dim), keepdim)


def log_of_sum(g: Graph, x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    """Return ReduceLogSumExp of the distances from the maximum: without this, ONNX Runtime is wrong if the first element is −inf."""
    if x.rank == 0:
        return x
    limits = torch.finfo(TORCH[x.dtype])
    largest = g.Clip(append_reduce(g, "ReduceMax", x, axes, True), limits.min, limits.max)
    made = g.Add(append_reduce(g, "ReduceLogSumExp", g.set_sizes(g.Sub(x, largest), x.sizes), axes, True), largest)
    return made if keepdim else g.set_sizes(g.Squeeze(made, list(axes)), left_over(x, axes, False))


def spread(g: Graph, x: Tensor, dim: Dims, correction: Number, keepdim: bool) -> Tensor:
    """Return the variance: the sum of squared distances from the mean, divided by max(count − correction, 0)."""
    x, axes = precise(g, x), axes_of(x, dim)
    centred = g.set_sizes(g.Sub(x, append_reduce(g, "ReduceMean", x, axes, True)), x.sizes)
    number = count(g, x, axes, keepdim, x.dtype)
    if isinstance(number, int):
        degrees: float | Tensor = float(max(number - correction, 0))
    else:
        degrees = number if correction == 0 else g.Max(g.Sub(number, correction), 0)
    return g.Div(append_reduce(g, "ReduceSumSquare", centred, axes, keepdim), degrees)


@translates(aten.var.dim, aten.var.correction)
def var(g: Graph, x: Tensor, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, correction: Number | None = None) -> Tensor:
    """var(x, dim?, unbiased or correction, keepdim) → ReduceMean, Sub, ReduceSumSquare, Div."""
    return spread(g, x, dim, int(unbiased) if correction is None else correction, keepdim)


@translates(aten.std.dim, aten.std.correction)
def std(g: Graph, x: Tensor, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, correction: Number | None = None) -> Tensor:
    """std(x, dim?, unbiased or correction, keepdim) → Sqrt of the variance."""
    return g.Sqrt(var(g, x, dim, unbiased, keepdim, correction))


@translates(aten.var_mean.dim, aten.var_mean.correction)
def var_mean(
    g: Graph, x: Tensor, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, correction: Number | None = None
) -> tuple[Tensor, Tensor]:
    """var_mean(x, dim?, unbiased or correction, keepdim) → the variance and the mean."""
    return var(g, x, dim, unbiased, keepdim, correction), mean_of(g, precise(g, x), axes_of(x, dim), keepdim)


@translates(aten.std_mean.dim, aten.std_mean.correction)
def std_mean(
    g: Graph, x: Tensor, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, correction: Number | None = None
) -> tuple[Tensor, Tensor]:
    """std_mean(x, dim?, unbiased or correction, keepdim) → the standard deviation and the mean."""
    return std(g, x, dim, unbiased, keepdim, correction), mean_of(g, precise(g, x), axes_of(x, dim), keepdim)


@translates(aten.var.default)
def var_of_all(g: Graph, x: Tensor, unbiased: bool = True) -> Tensor:
    """var(x, unbiased) → the variance of all elements."""
    return var(g, x, None, unbiased)


@translates(aten.std.default)
def std_of_all(g: Graph, x: Tensor, unbiased: bool = True) -> Tensor:
    """std(x, unbiased) → the standard deviation of all elements."""
    return std(g, x, None, unbiased)


@translates(aten.var_mean.default)
def var_mean_of_all(g: Graph, x: Tensor, unbiased: bool = True) -> tuple[Tensor, Tensor]:
    """var_mean(x, unbiased) → the variance and the mean of all elements."""
    return var_mean(g, x, None, unbiased)


@translates(aten.std_mean.default)
def std_mean_of_all(g: Graph, x: Tensor, unbiased: bool = True) -> tuple[Tensor, Tensor]:
    """std_mean(x, unbiased) → the standard deviation and the mean of all elements."""
    return std_mean(g, x, None, unbiased)


@translates(aten.trace.default)
def trace(g: Graph, x: Tensor) -> Tensor:
    """trace(x) → the sum of every (columns + 1)-th element: Reshape, Slice, ReduceSum."""
    columns = x.sizes[1]
    diagonal = g.Slice(g.Reshape(x, [-1]), [0], [columns * columns], [0], [columns + 1])
    shortest = min(x.sizes) if all(isinstance(size, int) for size in x.sizes) else sympy.Min(*x.sizes)
    return sum_(g, g.set_sizes(diagonal, (shortest,)), 0)


def half_rounded_up(size: Size) -> Size:
    """Return ⌈size / 2⌉, also for a dynamic size."""
    return (size + 1) // 2 if isinstance(size, int) else FloorDiv(size + 1, 2)
