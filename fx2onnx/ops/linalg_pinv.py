"""Pseudo-inverses and ranks of matrices, from their singular values above a tolerance."""

from __future__ import annotations

from typing import Any

import torch

from ..compat.operators import aten
from ..ir.dtypes import DOUBLE, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .linalg_eigen import singular_values, svd
from .linalg_lu import transpose_matrices


@translates(aten.linalg_pinv.atol_rtol_tensor, aten.linalg_pinv.atol_rtol_float, aten.linalg_pinv.default, aten.pinverse.default)
def pinv(
    g: Graph, x: Tensor, rcond: float | None = None, hermitian: bool = False, *, atol: float | Tensor | None = None, rtol: Any = None
) -> Tensor:
    """linalg_pinv(A, atol?, rtol?) → V·S⁺·Uᵀ from the function `svd`, with Where(S > tolerance, 1/S, 0) for S⁺."""
    x = _whole(g, x, hermitian)
    u, s, vh = svd(g, x, full_matrices=False)
    held = g.Greater(s, _tolerance(g, x, s, atol, rcond if rtol is None else rtol))
    inverse = g.Where(held, g.Div(g.scalar(1, DOUBLE), g.Where(held, s, g.scalar(1, DOUBLE))), g.scalar(0, DOUBLE))
    return g.MatMul(g.Mul(transpose_matrices(g, vh), g.Unsqueeze(inverse, [-2])), transpose_matrices(g, u))


@translates(aten.linalg_matrix_rank.atol_rtol_tensor, aten.linalg_matrix_rank.atol_rtol_float, aten.linalg_matrix_rank.default)
def matrix_rank(
    g: Graph, x: Tensor, tol: float | None = None, hermitian: bool = False, *, atol: float | Tensor | None = None, rtol: Any = None
) -> Tensor:
    """linalg_matrix_rank(A, atol?, rtol?) → the number of singular values above the tolerance: the function `svd`, Greater, ReduceSum."""
    x = _whole(g, x, hermitian)
    s = singular_values(g, x)
    above = g.Greater(s, _tolerance(g, x, s, tol if atol is None else atol, 0.0 if tol is not None else rtol))
    return g.ReduceSum(g.cast(above, INT64), [len(x.sizes) - 2], keepdims=0)  # ONNX Runtime keeps an empty axis −1


def _whole(g: Graph, x: Tensor, hermitian: bool) -> Tensor:
    """Return the matrix; of a symmetric one torch reads only the lower triangle."""
    if not hermitian:
        return x
    lower, below = (g.Trilu(x, g.const(k, INT64), upper=0) for k in (0, -1))
    return g.set_sizes(g.Add(lower, transpose_matrices(g, g.set_sizes(below, x.sizes))), x.sizes)


def _tolerance(g: Graph, x: Tensor, s: Tensor, atol: float | Tensor | None, rtol: float | Tensor | None) -> Tensor:
    """Return max(atol, rtol · max(S)); the default without atol is rtol = max(m, n) · ε of x."""
    largest = g.Slice(s, [0], [1], [-1])
    absolute = _each(g, 0.0 if atol is None else atol)
    by_default = g.Mul(_epsilon(g, x), largest)
    if rtol is not None:
        return g.Max(absolute, g.Mul(_each(g, rtol), largest))
    return by_default if atol is None else g.Where(g.Greater(absolute, g.scalar(0, DOUBLE)), absolute, by_default)


def _each(g: Graph, tolerance: float | Tensor) -> Tensor:
    """Return a tolerance that broadcasts with the singular values: a number, or one for each matrix."""
    if not isinstance(tolerance, Tensor):
        return g.scalar(tolerance, DOUBLE)
    return g.Unsqueeze(g.cast(tolerance, DOUBLE), [-1])


def _epsilon(g: Graph, x: Tensor) -> Tensor:
    epsilon = torch.finfo(torch.float64 if x.dtype == DOUBLE else torch.float32).eps
    longer: list[Size] = [x.sizes[-2], x.sizes[-1]]
    if all(isinstance(size, int) for size in longer):
        return g.scalar(epsilon * max(longer), DOUBLE)
    return g.Mul(g.cast(g.ReduceMax(g.ints(longer), [0], keepdims=0), DOUBLE), g.scalar(epsilon, DOUBLE))
