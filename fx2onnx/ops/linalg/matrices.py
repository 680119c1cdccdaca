"""Batches of matrices (b, m, n) in routines: their rows, columns and diagonals, and substitution in triangular ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
import sympy

from ...ir.dtypes import INT64
from ...ir.expressions import Size
from ...ir.graph import Graph, Tensor
from ...lower.local_functions import append_loop


def flat(g: Graph, x: Tensor, rank: int = 2) -> Tensor:
    """Return a batch of matrices (or vectors, for rank 1) with one batch axis."""
    sizes = (_product(x.sizes[: x.rank - rank]), *x.sizes[x.rank - rank :])
    return x if tuple(x.sizes) == sizes else g.set_sizes(g.Reshape(x, list(sizes), allowzero=1), sizes)


def _product(sizes: Sequence[Size]) -> Size:
    return math.prod(sizes) if all(isinstance(size, int) for size in sizes) else sympy.Mul(*sizes)


def unflat(g: Graph, x: Tensor, sizes: Sequence[Size]) -> Tensor:
    """Return the batch in its original sizes."""
    return x if x.known_sizes == tuple(sizes) else g.set_sizes(g.Reshape(x, list(sizes), allowzero=1), sizes)


def size(g: Graph, x: Tensor, axis: int) -> Tensor:
    """Return the size of an axis, without axes."""
    return g.Squeeze(g.Shape(x, start=axis, end=axis + 1), [0])


def count_to(g: Graph, n: Tensor) -> Tensor:
    """Return 0, …, n − 1."""
    return g.Range(g.const(0, INT64), n, g.const(1, INT64))


def column_indices(g: Graph, x: Tensor, n: Tensor) -> Tensor:
    """Return n iterations, or 0 if the batch has no elements."""
    filled = g.Min(g.Size(x), g.const(1, INT64))
    return g.Mul(n, filled)


def column(g: Graph, x: Tensor, k: Tensor) -> Tensor:
    """Return column k of each matrix, (b, m)."""
    return g.Gather(x, k, axis=2)


def row(g: Graph, x: Tensor, k: Tensor) -> Tensor:
    """Return row k of each matrix, (b, n)."""
    return g.Gather(x, k, axis=1)


def outer(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """Return the product of each column (b, m) with each row (b, n)."""
    return g.Mul(g.Unsqueeze(a, [2]), g.Unsqueeze(b, [1]))


def zeros_of(g: Graph, dtype: ir.DataType, *sizes: Tensor) -> Tensor:
    """Return zeros in computed sizes."""
    shape = g.Concat(*[g.Reshape(size, [1]) for size in sizes], axis=0)
    return g.Expand(g.const(0, dtype), shape)


def diagonal_of(g: Graph, x: Tensor) -> Tensor:
    """Return the diagonal (b, n) of square matrices (b, n, n)."""
    b, n = size(g, x, 0), size(g, x, 1)
    places = g.Mul(count_to(g, n), g.Add(n, 1))
    sizes = g.Concat(g.Unsqueeze(b, [0]), g.Unsqueeze(g.Mul(n, n), [0]), axis=0)
    return g.Gather(g.Reshape(x, sizes, allowzero=1), places, axis=1)


def strictly(g: Graph, x: Tensor, upper: int) -> Tensor:
    """Return the part of each matrix above its diagonal, or below it."""
    return g.Trilu(x, g.const(1 if upper else -1, INT64), upper=upper)


def reversed_order(g: Graph, down: Tensor) -> Tensor:
    """Return the numbers in reverse order."""
    return g.Slice(down, [-1], [-(2**63) + 1], [0], [-1])


def solve_by_substitution(g: Graph, strict: Tensor, diagonal: Tensor | None, order: Tensor, right: Tensor) -> Tensor:
    """Solve (strict + diagonal) x = right (b, n, r), with rows in an order in which each depends only on those before it.

    Args:
        diagonal: (b, n); None for ones.
    """
    n = size(g, strict, 1)
    rows = g.Unsqueeze(count_to(g, n), [1])

    def step(t: Graph, turn: Tensor, x: Tensor) -> list[Tensor]:
        k = t.Gather(order, turn, axis=0)
        known = row(t, x, k)  # (b, r)
        if diagonal is not None:
            known = t.Div(known, t.Gather(diagonal, t.Reshape(k, [1]), axis=1))
        factors = column(t, strict, k)
        untouched = t.Unsqueeze(t.Equal(factors, 0), [2])  # solved values do not change, even if 0 times infinity is NaN
        rest = t.Where(untouched, x, t.Sub(x, outer(t, factors, known)))
        return [t.Where(t.Equal(rows, k), t.Unsqueeze(known, [1]), rest)]

    return append_loop(g, column_indices(g, right, n), [right], step)[0]
