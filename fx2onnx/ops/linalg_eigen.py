"""Eigenvalues of symmetric matrices, singular values, and functions of them."""

from __future__ import annotations

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE
from ..ir.graph import Graph, Tensor
from ..lower.local_functions import call_local_function
from ..translate.registry import translates
from .linalg import jacobi as routines
from .linalg.matrices import diagonal_of, flat, unflat
from .linalg_lu import shortest, transpose_matrices
from .linalg_qr import orthogonal, reflections


@translates(aten.linalg_eigh.default)
def eigh(g: Graph, x: Tensor, UPLO: str = "L") -> list[Tensor]:
    """linalg_eigh(A, UPLO) → the function `eigh`: Jacobi rotations in two Loops."""
    values, vectors = call_local_function(
        g, "eigh", routines.eigh, flat(g, _double(g, transpose_matrices(g, x) if UPLO.upper() == "U" else x))
    )
    return [unflat(g, values, x.sizes[:-1]), unflat(g, vectors, x.sizes)]


def _double(g: Graph, x: Tensor) -> Tensor:
    """Return matrices in float64, because thousands of rotations in float32 have an error of 1e-3 at 64 columns."""
    return g.set_sizes(g.cast(x, DOUBLE), x.sizes)


@translates(aten.linalg_svd.default)
def svd(g: Graph, x: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> list[Tensor]:
    """linalg_svd(A, full_matrices) → the function `svd`: Jacobi rotations in two Loops; U by `geqrf` and `reflected`."""
    *batch, m, n = x.sizes
    if not (isinstance(m, int) and isinstance(n, int)) and m != n:
        raise Untranslated("it is unknown which of two dynamic dimensions is larger: make them constant, or give them the same name")
    wide = m != n and m < n
    tall = transpose_matrices(g, x) if wide else x
    made = _tall(g, flat(g, _double(g, tall)), full_matrices)
    left, values, right = (unflat(g, part, (*batch, *part.sizes[1:])) for part in made)
    if wide:
        left, right = right, left
    return [left, values, transpose_matrices(g, right)]


@translates(aten.svd.default)
def svd_with_v(g: Graph, x: Tensor, some: bool = True, compute_uv: bool = True) -> list[Tensor]:
    """svd(A, some) → linalg_svd, with its last result transposed; without vectors, zeros instead."""
    left, values, right = svd(g, x, full_matrices=not some or not compute_uv)
    if compute_uv:
        return [left, values, transpose_matrices(g, right)]
    return [g.Mul(left, 0), values, g.Mul(right, 0)]


def _tall(g: Graph, x: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return U (b, m, m or n), S (b, n) and V (b, n, n) of matrices (b, m, n) that are not wide.

    U is Q of a QR of U·S, whose R is diagonal, so it is orthogonal even if a singular value is 0.
    """
    b, m, n = x.sizes
    columns, values, right = call_local_function(g, "svd", routines.svd, x)
    vectors, taus = reflections(g, g.set_sizes(columns, x.sizes))
    q = orthogonal(g, vectors, taus, m if full else n)
    signs = g.Where(g.Less(diagonal_of(g, g.Slice(vectors, [0], [n], [1])), 0), g.scalar(-1, x.dtype), g.scalar(1, x.dtype))
    if full:
        signs = g.Concat(signs, g.Expand(g.const(1, x.dtype), [b, m - n]), axis=1)
    return g.set_sizes(g.Mul(q, g.Unsqueeze(signs, [1])), q.sizes), g.set_sizes(values, (b, n)), g.set_sizes(right, (b, n, n))


def singular_values(g: Graph, x: Tensor) -> Tensor:
    """Return the singular values (…, min(m, n)) of matrices (…, m, n) in float64, descending; both axes may be dynamic."""
    *batch, m, n = x.sizes
    values = call_local_function(g, "svd", routines.svd, flat(g, _double(g, x)))[1]
    count = shortest(m, n)
    return unflat(g, values if count == n else g.Slice(values, [0], [count], [1]), (*batch, count))


@translates(aten.linalg_cond.default)
def cond(g: Graph, x: Tensor, p: float | None = None) -> Tensor:
    """linalg_cond(A, p) → the largest singular value divided by the smallest, if p is None or 2, or the inverse if p is −2."""
    if p not in (None, 2, -2):
        raise Untranslated("only the condition number for the 2-norm is supported (p=None, 2 or -2)")
    values = singular_values(g, x)
    ends = [g.Squeeze(g.Slice(values, [at], [stop], [-1]), [-1]) for at, stop in ((0, 1), (-1, 2**63 - 1))]
    return g.Div(*(ends if p != -2 else ends[::-1]))
