"""Routines for QR: Householder reflections one column at a time, as in LAPACK, and products with them."""

from __future__ import annotations

from ...ir.graph import Graph, Tensor
from ...lower.local_functions import append_loop
from .matrices import column, column_indices, count_to, outer, reversed_order, size, strictly, zeros_of


def geqrf(g: Graph, x: Tensor) -> list[Tensor]:
    """Return R in the upper triangle with the reflection vectors below it (b, m, n), and the factors of the reflections (b, k)."""
    b, m, n = (size(g, x, axis) for axis in range(3))
    k = g.Min(m, n)
    rows, columns, steps = count_to(g, m), g.Unsqueeze(count_to(g, n), [0]), count_to(g, k)

    def step(t: Graph, k: Tensor, a: Tensor, taus: Tensor) -> list[Tensor]:
        here, below = column(t, a, k), t.Greater(rows, k)
        none = t.scalar(0, x.dtype)
        tail, first = t.Where(below, here, none), t.Gather(here, t.Reshape(k, [1]), axis=1)  # (b, m), (b, 1)
        squares = t.ReduceSumSquare(tail, [1], keepdims=1)
        done, length = t.Equal(squares, 0), t.Sqrt(t.Add(squares, t.Mul(first, first)))
        left = t.Where(t.Less(first, 0), length, t.Neg(length))
        tau = t.Where(done, none, t.Div(t.Sub(left, first), left))
        rest = t.Where(t.And(below, t.Not(done)), t.Div(tail, t.Sub(first, left)), none)
        vector = t.Where(t.Equal(rows, k), t.scalar(1, x.dtype), rest)
        sums = t.ReduceSum(t.Mul(t.Unsqueeze(vector, [2]), a), [1], keepdims=0)  # (b, n)
        after = t.Where(t.Greater(columns, k), t.Mul(tau, sums), none)
        made = t.Where(t.Equal(rows, k), t.Where(done, first, left), t.Where(below, rest, here))
        a = t.Where(t.Equal(columns, k), t.Unsqueeze(made, [2]), t.Sub(a, outer(t, vector, after)))
        return [a, t.Where(t.Equal(steps, k), tau, taus)]

    return append_loop(g, column_indices(g, x, k), [x, zeros_of(g, x.dtype, b, k)], step)


def reflected(g: Graph, vectors: Tensor, taus: Tensor, other: Tensor) -> list[Tensor]:
    """Return Q times another matrix (b, m, r): the reflections from last to first."""
    return [_apply_reflections(g, vectors, taus, other, reversed_order(g, count_to(g, size(g, taus, 1))))]


def reflected_back(g: Graph, vectors: Tensor, taus: Tensor, other: Tensor) -> list[Tensor]:
    """Return Qᵀ times another matrix (b, m, r): the reflections from first to last."""
    return [_apply_reflections(g, vectors, taus, other, count_to(g, size(g, taus, 1)))]


def _apply_reflections(g: Graph, vectors: Tensor, taus: Tensor, other: Tensor, order: Tensor) -> Tensor:
    rows, strict = count_to(g, size(g, vectors, 1)), strictly(g, vectors, upper=0)

    def step(t: Graph, turn: Tensor, c: Tensor) -> list[Tensor]:
        k = t.Gather(order, turn, axis=0)
        vector = t.Where(t.Equal(rows, k), t.scalar(1, vectors.dtype), column(t, strict, k))
        sums = t.ReduceSum(t.Mul(t.Unsqueeze(vector, [2]), c), [1], keepdims=0)  # (b, r)
        return [t.Sub(c, outer(t, vector, t.Mul(t.Gather(taus, t.Reshape(k, [1]), axis=1), sums)))]

    return append_loop(g, column_indices(g, other, size(g, taus, 1)), [other], step)[0]
