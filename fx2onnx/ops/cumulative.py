"""Running sums, products and extremes along an axis: CumSum, and Scan for the others. Reductions are in reduce.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..ir.dtypes import BOOL, FLOATS, INT64, TORCH, UINT8
from ..ir.expressions import Size
from ..ir.float64_math import log1p_of
from ..ir.graph import Graph, Tensor
from ..lower.subgraphs import finish_subgraph, input_named
from ..translate.registry import translates
from .create import expand_scalar

Step = Callable[..., Sequence[Tensor]]


@translates(aten.cumsum.default)
def cumsum(g: Graph, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """cumsum(x, dim, dtype) → CumSum in the dtype of the result."""
    x = g.cast(x, g.dtype)
    return x if x.rank == 0 else g.CumSum(x, g.const(dim, INT64))


@translates(aten.cumprod.default)
def cumprod(g: Graph, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """cumprod(x, dim, dtype) → Scan of Mul in the dtype of the result."""
    x = g.cast(x, g.dtype)
    return x if x.rank == 0 else products(g, x, dim % x.rank)[1]


def products(g: Graph, x: Tensor, axis: int) -> list[Tensor]:
    """Return the product along an axis, and the running product."""
    return append_scan(g, x, axis, [expand_scalar(g, without(x, axis), 1, x.dtype)], lambda body, item, so_far: [body.Mul(so_far, item)], 1)


@translates(aten.logcumsumexp.default)
def logcumsumexp(g: Graph, x: Tensor, dim: int) -> Tensor:
    """logcumsumexp(x, dim) → Scan of max(a, b) + log1p(exp(−|a − b|)) for the running value and the next element."""

    def step(body: Graph, item: Tensor, so_far: Tensor) -> list[Tensor]:
        same = body.Equal(item, so_far)  # also true for equal infinities, whose difference is NaN
        apart = body.Where(same, body.scalar(0, item.dtype), body.Abs(body.Sub(item, so_far)))
        return [body.Add(body.Max(item, so_far), log1p_of(body, body.Exp(body.Neg(apart))))]

    if x.rank == 0:
        return x
    axis = dim % x.rank
    return append_scan(g, x, axis, [expand_scalar(g, without(x, axis), float("-inf"), x.dtype)], step, 1)[1]


@translates(aten.cummax.default)
def cummax(g: Graph, x: Tensor, dim: int) -> Sequence[Tensor]:
    """cummax(x, dim) → Scan of GreaterOrEqual and Where: the values and their last positions; NaN is larger than all numbers."""
    return _running_extreme(g, x, dim, "GreaterOrEqual")


@translates(aten.cummin.default)
def cummin(g: Graph, x: Tensor, dim: int) -> Sequence[Tensor]:
    """cummin(x, dim) → Scan of LessOrEqual and Where: the values and their last positions; NaN is smaller than all numbers."""
    return _running_extreme(g, x, dim, "LessOrEqual")


def _running_extreme(g: Graph, x: Tensor, dim: int, better: str) -> Sequence[Tensor]:
    def step(body: Graph, item: Tensor, value: Tensor, index: Tensor, position: Tensor) -> list[Tensor]:
        take = body.op(better, item, value)
        if item.dtype in FLOATS:
            take = body.Or(body.IsNaN(item), take)
        return [body.Where(take, item, value), body.Where(take, position, index), body.Add(position, 1)]

    if x.rank == 0:
        return x, g.const(0, INT64)
    axis = dim % x.rank
    x = g.set_sizes(g.cast(x, UINT8), x.sizes) if x.dtype == BOOL else x
    rest = without(x, axis)
    initial = [
        expand_scalar(g, rest, _get_limit(x.dtype, better == "GreaterOrEqual"), x.dtype),
        expand_scalar(g, rest, 0, INT64),
        g.const(0, INT64),
    ]
    return append_scan(g, x, axis, initial, step, 2)[3:]


def _get_limit(dtype: ir.DataType, lowest: bool) -> float:
    if dtype in FLOATS:
        return float("-inf" if lowest else "inf")
    limits = torch.iinfo(TORCH[dtype])
    return limits.min if lowest else limits.max


def without(x: Tensor, axis: int) -> list[Size]:
    """Return the sizes of `x` without this axis."""
    return [size for i, size in enumerate(x.sizes) if i != axis]


def append_scan(g: Graph, x: Tensor, axis: int, initial: Sequence[Tensor], step: Step, outputs: int) -> list[Tensor]:
    """Append Scan along an axis; return each final state, and the first `outputs` states after each step.

    ONNX Runtime crashes if Scan iterates over, or writes to, another axis than the first of an empty tensor, and refuses zero steps.
    Therefore the axis is moved to the front, and if it may be empty, an element is appended and its result dropped.
    """
    order = [axis, *[i for i in range(x.rank) if i != axis]]
    items = g.Transpose(x, perm=order) if axis else x
    length = x.sizes[axis]
    spare = not (isinstance(length, int) and length > 0)
    if spare:
        items = g.Concat(items, g.Unsqueeze(initial[0], [0]), axis=0)
    made = list(g.Scan(*initial, items, outputs=len(initial) + outputs, body=_body(g, x, axis, initial, step, outputs), num_scan_inputs=1))
    for i, (value, state) in enumerate(zip(made, [*initial, *initial[:outputs]], strict=True)):
        value.dtype = state.dtype
        if i < len(initial):
            continue
        value = g.Slice(value, [0], [-1], [0]) if spare else value
        made[i] = g.Transpose(value, perm=[order.index(j) for j in range(x.rank)]) if axis else value
    return made


def _body(g: Graph, x: Tensor, axis: int, initial: Sequence[Tensor], step: Step, outputs: int) -> ir.Graph:
    body = g.child()
    states = [input_named(g, "state", state.sizes, state.dtype) for state in initial]
    item = input_named(g, "item", without(x, axis), x.dtype)
    new, dtypes = step(body, item, *states), [state.dtype for state in initial]
    return finish_subgraph(body, "body", [*states, item], [*new, *new[:outputs]], [*dtypes, *dtypes[:outputs]])
