"""Routines for triangular matrices: Cholesky factors, and systems with one or two triangles."""

from __future__ import annotations

from ...ir.dtypes import INT32, INT64
from ...ir.graph import Graph, Tensor
from ...lower.local_functions import append_loop
from .matrices import (
    column,
    column_indices,
    count_to,
    diagonal_of,
    outer,
    reversed_order,
    row,
    size,
    solve_by_substitution,
    strictly,
    zeros_of,
)


def cholesky(g: Graph, x: Tensor) -> list[Tensor]:
    """Return the lower factor (b, n, n), NaN from the first pivot that is not positive, and its one-based index, int32 (b,), or 0."""
    b, n = size(g, x, 0), size(g, x, 1)
    rows, columns = count_to(g, n), g.Unsqueeze(count_to(g, n), [0])

    def step(t: Graph, k: Tensor, a: Tensor, info: Tensor) -> list[Tensor]:
        pivot = t.Gather(row(t, a, k), t.Reshape(k, [1]), axis=1)  # (b, 1)
        bad = t.Not(t.Greater(pivot, 0))
        root = t.Where(bad, t.scalar(float("nan"), x.dtype), t.Sqrt(t.Max(pivot, 0)))
        factors = t.Where(t.Less(rows, k), t.scalar(0, x.dtype), t.Div(column(t, a, k), root))
        after = t.Where(t.Greater(rows, k), factors, t.scalar(0, x.dtype))
        a = t.Where(t.Equal(columns, k), t.Unsqueeze(factors, [2]), t.Sub(a, outer(t, after, after)))
        first = t.And(t.Equal(info, 0), t.Squeeze(bad, [1]))
        return [a, t.Where(first, t.Add(k, 1), info)]

    factor, info = append_loop(g, column_indices(g, x, n), [x, zeros_of(g, INT64, b)], step)
    return [g.Trilu(factor, upper=0), g.cast(info, INT32)]


def solve_lower(g: Graph, x: Tensor, right: Tensor) -> list[Tensor]:
    """Solve L y = right (b, n, r) with the lower triangle and the diagonal."""
    return [_forward_substitute(g, x, right, True)]


def solve_upper(g: Graph, x: Tensor, right: Tensor) -> list[Tensor]:
    """Solve U y = right (b, n, r) with the upper triangle and the diagonal."""
    return [_backward_substitute(g, x, right, True)]


def solve_unit_lower(g: Graph, x: Tensor, right: Tensor) -> list[Tensor]:
    """Solve L y = right (b, n, r) with ones on the diagonal of L."""
    return [_forward_substitute(g, x, right, False)]


def solve_unit_upper(g: Graph, x: Tensor, right: Tensor) -> list[Tensor]:
    """Solve U y = right (b, n, r) with ones on the diagonal of U."""
    return [_backward_substitute(g, x, right, False)]


def cholesky_solve(g: Graph, x: Tensor, right: Tensor) -> list[Tensor]:
    """Solve L Lᵀ y = right (b, n, r)."""
    return [_backward_substitute(g, g.Transpose(x, perm=[0, 2, 1]), _forward_substitute(g, x, right, True), True)]


def _forward_substitute(g: Graph, x: Tensor, right: Tensor, diagonal: bool) -> Tensor:
    order = count_to(g, size(g, x, 1))
    return solve_by_substitution(g, strictly(g, x, upper=0), diagonal_of(g, x) if diagonal else None, order, right)


def _backward_substitute(g: Graph, x: Tensor, right: Tensor, diagonal: bool) -> Tensor:
    order = reversed_order(g, count_to(g, size(g, x, 1)))
    return solve_by_substitution(g, strictly(g, x, upper=1), diagonal_of(g, x) if diagonal else None, order, right)
