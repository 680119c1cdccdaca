"""Routines for LU: a loop over columns, systems with its factors, determinants."""

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


def lu(g: Graph, x: Tensor) -> list[Tensor]:
    """Return factors (b, m, n), one-based pivots (b, k), the order of the rows (b, m), and the first zero pivot, int32 (b,)."""
    b, m, n = (size(g, x, axis) for axis in range(3))
    k = g.Min(m, n)
    rows, columns, steps = count_to(g, m), g.Unsqueeze(count_to(g, n), [0]), count_to(g, k)
    shape = g.Concat(g.Unsqueeze(b, [0]), g.Unsqueeze(m, [0]), axis=0)
    initial = [x, zeros_of(g, INT64, b, k), g.Expand(rows, shape), zeros_of(g, INT64, b)]

    def step(t: Graph, k: Tensor, a: Tensor, pivots: Tensor, order: Tensor, info: Tensor) -> list[Tensor]:
        below = t.Greater(rows, k)  # (m,)
        largest = t.ArgMax(t.Where(t.Less(rows, k), t.scalar(-1, x.dtype), t.Abs(column(t, a, k))), axis=1, keepdims=1)  # (b, 1)
        swapped = t.Where(t.Equal(rows, k), largest, t.Where(t.Equal(rows, largest), k, rows))  # (b, m)
        a, order = t.GatherND(a, t.Unsqueeze(swapped, [2]), batch_dims=1), t.GatherElements(order, swapped, axis=1)
        pivot = t.Gather(row(t, a, k), t.Reshape(k, [1]), axis=1)  # (b, 1)
        singular = t.Equal(pivot, 0)
        factors = t.Where(t.And(below, t.Not(singular)), t.Div(column(t, a, k), pivot), t.scalar(0, x.dtype))  # (b, m)
        right = t.Where(t.Greater(columns, k), row(t, a, k), t.scalar(0, x.dtype))  # (b, n)
        here = t.And(t.Unsqueeze(below, [1]), t.Equal(columns, k))  # (m, n)
        a = t.Where(here, t.Unsqueeze(factors, [2]), t.Sub(a, outer(t, factors, right)))
        pivots = t.Where(t.Equal(steps, k), t.Add(largest, 1), pivots)
        first = t.And(t.Equal(info, 0), t.Squeeze(singular, [1]))
        return [a, pivots, order, t.Where(first, t.Add(k, 1), info)]

    factors, pivots, order, info = append_loop(g, column_indices(g, x, k), initial, step)
    return [factors, pivots, order, g.cast(info, INT32)]


def rows_after(g: Graph, pivots: Tensor, count: Tensor) -> list[Tensor]:
    """Return the order (b, m) of `count` rows after one-based swaps (b, k)."""
    b, k = size(g, pivots, 0), size(g, pivots, 1)
    rows = count_to(g, count)
    initial = g.Expand(rows, g.Concat(g.Unsqueeze(b, [0]), g.Unsqueeze(count, [0]), axis=0))

    def step(t: Graph, k: Tensor, order: Tensor) -> list[Tensor]:
        other = t.Sub(t.Gather(pivots, t.Reshape(k, [1]), axis=1), 1)  # (b, 1)
        swapped = t.Where(t.Equal(rows, k), other, t.Where(t.Equal(rows, other), k, rows))
        return [t.GatherElements(order, swapped, axis=1)]

    return append_loop(g, column_indices(g, pivots, k), [initial], step)


def determinant(g: Graph, factors: Tensor, pivots: Tensor) -> list[Tensor]:
    """Return the sign of the swaps, the determinant, its sign, and the logarithm of its absolute value, (b,) each."""
    diagonal = diagonal_of(g, factors)
    steps = g.Add(count_to(g, size(g, pivots, 1)), 1)
    moved = g.ReduceSum(g.cast(g.Not(g.Equal(pivots, steps)), INT64), [1], keepdims=0)
    parity = g.cast(g.Sub(1, g.Mul(g.Mod(moved, g.const(2, INT64)), 2)), factors.dtype)
    product = g.Mul(parity, g.ReduceProd(diagonal, [1], keepdims=0))
    sign = g.Mul(parity, g.ReduceProd(g.Sign(diagonal), [1], keepdims=0))
    return [parity, product, sign, g.ReduceSum(g.Log(g.Abs(diagonal)), [1], keepdims=0)]


def lu_solve(g: Graph, factors: Tensor, order: Tensor, right: Tensor) -> list[Tensor]:
    """Solve A x = right (b, n, r) with the factors of A and the order of its rows."""
    down = count_to(g, size(g, factors, 1))
    right = g.GatherND(right, g.Unsqueeze(order, [2]), batch_dims=1)
    half = solve_by_substitution(g, strictly(g, factors, upper=0), None, down, right)
    return [solve_by_substitution(g, strictly(g, factors, upper=1), diagonal_of(g, factors), reversed_order(g, down), half)]


def lu_solve_transposed(g: Graph, factors: Tensor, order: Tensor, right: Tensor) -> list[Tensor]:
    """Solve Aᵀ x = right (b, n, r) with the factors of A and the order of its rows."""
    down = count_to(g, size(g, factors, 1))
    turned = g.Transpose(factors, perm=[0, 2, 1])
    half = solve_by_substitution(g, strictly(g, turned, upper=0), diagonal_of(g, factors), down, right)
    made = solve_by_substitution(g, strictly(g, turned, upper=1), None, reversed_order(g, down), half)
    shape = g.Shape(order)
    back = g.ScatterElements(order, order, g.Expand(down, shape), axis=1)  # the inverse permutation
    return [g.GatherND(made, g.Unsqueeze(back, [2]), batch_dims=1)]
