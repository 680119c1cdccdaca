"""Routines for eigenvalues and singular values, in float64: Jacobi rotations, of half as many pairs at once as there are columns."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.dtypes import INT64
from ...ir.graph import Graph, Tensor
from ...lower.local_functions import append_loop, append_while_loop
from .matrices import column_indices, count_to, diagonal_of, size, zeros_of

SWEEPS = 30  # more than any matrix needs: the loop ends after a sweep that converges
ENOUGH = 1e-13  # tolerance, relative to the largest element or the lengths of two columns; a sweep squares the error
IterationProxy = Callable[..., list[Tensor]]


def eigh(g: Graph, x: Tensor) -> list[Tensor]:
    """Return eigenvalues (b, n), ascending, and eigenvectors (b, n, n) of symmetric matrices, of which the lower triangle is read."""
    x, largest = _scale_by_largest(g, g.Add(g.Trilu(x, upper=0), g.Transpose(g.Trilu(x, g.const(-1, INT64), upper=0), perm=[0, 2, 1])))
    n = size(g, x, 1)
    places = count_to(g, n)
    off = g.Sub(1, g.cast(g.Equal(g.Unsqueeze(places, [1]), places), x.dtype))

    def rotate(t: Graph, partner: Tensor, a: Tensor, v: Tensor) -> list[Tensor]:
        flat = t.Reshape(a, t.Concat(size_of(t, a, 0), t.const([-1], INT64), axis=0))
        beside = t.Gather(flat, t.Add(t.Mul(places, n), partner), axis=1)
        cos, sin = _angles(t, diagonal_of(t, a), beside, partner, places)
        a = _columns(t, a, cos, sin, partner)
        a = t.Sub(t.Mul(t.Unsqueeze(cos, [2]), a), t.Mul(t.Unsqueeze(sin, [2]), t.Gather(a, partner, axis=1)))
        return [a, _columns(t, v, cos, sin, partner)]

    def left(t: Graph, a: Tensor, v: Tensor) -> Tensor:
        return t.ReduceMax(t.Abs(t.Mul(a, off)), keepdims=0)

    turned, vectors = _swept(g, x, n, rotate, left)
    values, order = g.TopK(diagonal_of(g, turned), g.Unsqueeze(n, [0]), axis=1, largest=0, outputs=2)
    return [g.Mul(values, g.Unsqueeze(largest, [1])), _reorder_columns(g, vectors, order)]


def svd(g: Graph, x: Tensor) -> list[Tensor]:
    """Return U·S (b, m, n), the singular values (b, n), descending, and V (b, n, n) of matrices (b, m, n); those of wide ones end in 0."""
    x, largest = _scale_by_largest(g, x)
    n = size(g, x, 2)
    places = count_to(g, n)

    def rotate(t: Graph, partner: Tensor, a: Tensor, v: Tensor) -> list[Tensor]:
        squares = t.ReduceSumSquare(a, [1], keepdims=0)
        products = t.ReduceSum(t.Mul(a, t.Gather(a, partner, axis=2)), [1], keepdims=0)
        cos, sin = _angles(t, squares, t.Where(t.Equal(partner, places), t.scalar(0, a.dtype), products), partner, places)
        return [_columns(t, a, cos, sin, partner), _columns(t, v, cos, sin, partner)]

    def left(t: Graph, a: Tensor, v: Tensor) -> Tensor:
        lengths = t.Sqrt(t.ReduceSumSquare(a, [1], keepdims=1))  # (b, 1, n)
        safe = t.Max(lengths, ENOUGH)  # shorter columns count as zero, whatever their rotation
        unit = t.Div(a, safe)
        return t.ReduceMax(t.Abs(t.Mul(t.MatMul(t.Transpose(unit, perm=[0, 2, 1]), unit), off)), keepdims=0)

    off = g.Sub(1, g.cast(g.Equal(g.Unsqueeze(places, [1]), places), x.dtype))
    turned, vectors = _swept(g, x, n, rotate, left)
    lengths = g.Sqrt(g.ReduceSumSquare(turned, [1], keepdims=0))
    values, order = g.TopK(lengths, g.Unsqueeze(n, [0]), axis=1, outputs=2)
    back = g.Unsqueeze(largest, [1])
    return [g.Mul(_reorder_columns(g, turned, order), g.Unsqueeze(back, [2])), g.Mul(values, back), _reorder_columns(g, vectors, order)]


def size_of(g: Graph, x: Tensor, axis: int) -> Tensor:
    """Return the size of an axis, (1,)."""
    return g.Shape(x, start=axis, end=axis + 1)


def _scale_by_largest(g: Graph, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the matrices divided by their largest element (b,), so that no square overflows, and that element."""
    b = size(g, x, 0)
    flat = g.Reshape(g.Abs(x), g.Concat(size_of(g, x, 0), g.Mul(size_of(g, x, 1), size_of(g, x, 2)), axis=0), allowzero=1)
    largest = g.ReduceMax(g.Concat(flat, zeros_of(g, x.dtype, b, g.const([1], INT64)), axis=1), [1], keepdims=0)
    largest = g.Where(g.Equal(largest, 0), g.scalar(1, x.dtype), largest)
    return g.Div(x, g.Unsqueeze(largest, [1, 2])), largest


def _swept(g: Graph, x: Tensor, n: Tensor, rotate: IterationProxy, left: Callable[..., Tensor]) -> list[Tensor]:
    """Return matrices (…, n) after all rotations, and the product of the rotations (b, n, n)."""
    places = count_to(g, n)
    one = g.cast(g.Equal(g.Unsqueeze(places, [1]), places), x.dtype)
    vectors = g.Expand(one, g.Concat(size_of(g, x, 0), g.Unsqueeze(n, [0]), g.Unsqueeze(n, [0]), axis=0))
    rounds = g.Sub(g.Add(n, g.Mod(n, g.const(2, INT64))), 1)  # of a tournament in which each pair of columns meets once
    most = g.Mul(column_indices(g, x, g.const(1, INT64)), SWEEPS)

    def sweep(t: Graph, turn: Tensor, a: Tensor, v: Tensor) -> list[Tensor]:
        def meet(s: Graph, number: Tensor, a: Tensor, v: Tensor) -> list[Tensor]:
            return rotate(s, _partner(s, places, n, rounds, number), a, v)

        a, v = append_loop(t, rounds, [a, v], meet)
        return [t.Greater(left(t, a, v), ENOUGH), a, v]

    return append_while_loop(g, most, [x, vectors], sweep)


def _partner(g: Graph, places: Tensor, n: Tensor, rounds: Tensor, number: Tensor) -> Tensor:
    """Return the partner of each column in a round; the column itself if it has none, because n is odd."""
    other = g.Mod(g.Sub(g.Mul(number, 2), places), rounds)
    other = g.Where(g.Equal(other, places), rounds, other)
    other = g.Where(g.Equal(places, rounds), number, other)
    return g.Where(g.Less(other, n), other, places)


def _angles(g: Graph, diagonal: Tensor, beside: Tensor, partner: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosine and sine (b, n) of the rotation of each column with its partner that makes them orthogonal."""
    none = g.scalar(0, diagonal.dtype)
    twice = g.Where(g.Equal(partner, places), none, g.Mul(beside, 2))
    apart = g.Sub(g.Gather(diagonal, partner, axis=1), diagonal)
    tie = g.Where(g.Less(places, partner), g.scalar(1, diagonal.dtype), g.scalar(-1, diagonal.dtype))
    sign = g.Where(g.Equal(apart, 0), tie, g.Sign(apart))
    length = g.Add(g.Abs(apart), g.Sqrt(g.Add(g.Mul(apart, apart), g.Mul(twice, twice))))
    tangent = g.Where(g.Equal(length, 0), none, g.Div(g.Mul(sign, twice), length))
    cos = g.Reciprocal(g.Sqrt(g.Add(g.Mul(tangent, tangent), 1)))
    return cos, g.Mul(tangent, cos)


def _columns(g: Graph, x: Tensor, cos: Tensor, sin: Tensor, partner: Tensor) -> Tensor:
    return g.Sub(g.Mul(x, g.Unsqueeze(cos, [1])), g.Mul(g.Gather(x, partner, axis=2), g.Unsqueeze(sin, [1])))


def _reorder_columns(g: Graph, x: Tensor, order: Tensor) -> Tensor:
    """Return the columns of each matrix (b, m, n) in this order (b, n)."""
    return g.GatherElements(x, g.Expand(g.Unsqueeze(order, [1]), g.Shape(x)), axis=2)
