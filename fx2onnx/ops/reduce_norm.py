"""Norms, dist and cdist. Normalisation layers are in norm.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import BOOL
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .linalg_eigen import singular_values
from .reduce import Dims, append_reduce, axes_of, precise
from .reduce_extreme import extreme
from .shape import permute_axes

DIRECT: dict[float, str] = {1: "ReduceL1", 2: "ReduceL2"}
EXTREME = {math.inf: "ReduceMax", -math.inf: "ReduceMin"}


def p_norm(g: Graph, x: Tensor, p: float, axes: list[int], keepdim: bool) -> Tensor:
    """Return (Σ|x|ᵖ)^(1/p): ReduceL1, ReduceL2, ReduceMax or ReduceMin of Abs, the count of nonzero elements, or Pow, ReduceSum, Pow."""
    if p in DIRECT:
        return append_reduce(g, DIRECT[p], x, axes, keepdim)
    if p in EXTREME:
        return extreme(g, EXTREME[p], g.Abs(x), axes, keepdim)
    x = precise(g, x)
    if p == 0:
        return append_reduce(g, "ReduceSum", g.set_sizes(g.cast(g.cast(x, BOOL), x.dtype), x.sizes), axes, keepdim)
    powers = g.set_sizes(g.Pow(g.Abs(x), p), x.sizes)
    return g.Pow(append_reduce(g, "ReduceSum", powers, axes, keepdim), 1 / p)


@translates(aten.linalg_vector_norm.default)
def vector_norm(g: Graph, x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """linalg_vector_norm(x, ord, dim?, keepdim, dtype) → ReduceL2 and others, see `p_norm`."""
    return p_norm(g, g.cast(x, g.dtype), ord, axes_of(x, dim), keepdim)


@translates(aten.norm.Scalar, aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dim_dtype, aten.norm.ScalarOpt_dtype)
def norm(g: Graph, x: Tensor, p: float | None = 2, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """norm(x, p, dim?, keepdim, dtype) → the vector norm."""
    return vector_norm(g, x, 2 if p is None else p, dim, keepdim)


@translates(aten.linalg_matrix_norm.default, aten.linalg_matrix_norm.str_ord)
def matrix_norm(
    g: Graph, x: Tensor, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """linalg_matrix_norm(x, ord, dim, keepdim, dtype) → ReduceL2 for fro; the maximum or minimum of ReduceL1 for ±1 and ±inf."""
    x, (rows, columns) = g.cast(x, g.dtype), (d % x.rank for d in dim)
    if ord == "fro":
        return append_reduce(g, "ReduceL2", x, sorted((rows, columns)), keepdim)
    if ord in ("nuc", 2, -2):
        return _norm_by_singular_values(g, x, ord, (rows, columns), keepdim)
    if ord not in (1, -1, math.inf, -math.inf):
        raise Untranslated(f"the matrix norm {ord} is not supported")
    summed, found = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = append_reduce(g, "ReduceL1", x, [summed], True)
    largest = extreme(g, "ReduceMax" if ord > 0 else "ReduceMin", sums, [found], True)
    return largest if keepdim else g.Squeeze(largest, sorted((rows, columns)))


def _norm_by_singular_values(g: Graph, x: Tensor, ord: float | str, dim: tuple[int, int], keepdim: bool) -> Tensor:
    """Return the sum of the singular values, the largest or the smallest."""
    order = [*[i for i in range(x.rank) if i not in dim], *dim]
    values = singular_values(g, permute_axes(g, x, order))
    last = [values.rank - 1]
    kind = {"nuc": "ReduceSum", 2: "ReduceMax", -2: "ReduceMin"}[ord]
    made = append_reduce(g, kind, values, last, False)
    return g.Unsqueeze(made, sorted(dim)) if keepdim else made


@translates(aten.linalg_norm.default, aten.linalg_norm.ord_str)
def linalg_norm(
    g: Graph, x: Tensor, ord: float | str | None = None, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """linalg_norm(x, ord?, dim?, keepdim, dtype) → the vector norm, or the matrix norm if an order and two axes are given."""
    axes = [dim] if isinstance(dim, int) else dim or list(range(x.rank))
    if ord is not None and len(axes) == 2:
        return matrix_norm(g, x, ord, axes, keepdim)
    return vector_norm(g, x, 2 if ord is None else float(ord), axes, keepdim)


@translates(aten.frobenius_norm.dim)
def frobenius_norm(g: Graph, x: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """frobenius_norm(x, dim, keepdim) → ReduceL2."""
    return vector_norm(g, x, 2, dim, keepdim)


@translates(aten.dist.default)
def dist(g: Graph, x: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """dist(x, y, p) → the norm of Sub(x, y)."""
    x, other = g.promote(x, other)
    longer = x if x.rank >= other.rank else other
    difference = g.set_sizes(g.Sub(x, other), longer.sizes)
    return p_norm(g, difference, p, axes_of(difference, None), False)


@translates(aten.cdist.default)
def cdist(g: Graph, x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    """cdist(a, b, p) → the norm along the last axis of a[…, :, None, :] − b[…, None, :, :]: Unsqueeze, Sub, and the norm."""
    difference = g.set_sizes(g.Sub(g.Unsqueeze(x1, [-2]), g.Unsqueeze(x2, [-3])), (*g.sizes, x1.sizes[-1]))
    return p_norm(g, difference, p, [difference.rank - 1], False)
