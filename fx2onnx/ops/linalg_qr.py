"""QR by Householder reflections, and products with Q."""

from __future__ import annotations

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..lower.local_functions import call_local_function
from ..translate.registry import translates
from .create import identity, make_full
from .linalg import qr as routines
from .linalg.matrices import flat, unflat
from .linalg_lu import shortest, transpose_matrices


def reflections(g: Graph, x: Tensor) -> list[Tensor]:
    """Return R and the vectors of the reflections (b, m, n), and their factors (b, min(m, n)), of matrices (b, m, n)."""
    vectors, taus = call_local_function(g, "geqrf", routines.geqrf, x)
    return [g.set_sizes(vectors, x.sizes), g.set_sizes(taus, (x.sizes[0], shortest(*x.sizes[1:])))]


def orthogonal(g: Graph, vectors: Tensor, taus: Tensor, columns: Size) -> Tensor:
    """Return the first columns of Q (b, m, columns)."""
    b, m = vectors.sizes[:2]
    one = g.Expand(identity(g, m, columns, vectors.dtype), [b, m, columns])
    return g.set_sizes(call_local_function(g, "reflected", routines.reflected, vectors, taus, one)[0], (b, m, columns))


@translates(aten.linalg_qr.default)
def qr(g: Graph, x: Tensor, mode: str = "reduced") -> list[Tensor]:
    """linalg_qr(A, mode) → the functions `geqrf` and `reflected`, with a Loop over columns each."""
    if mode not in ("reduced", "complete", "r"):
        raise Untranslated(f"mode={mode!r} is not supported")
    *batch, m, n = x.sizes
    vectors, taus = reflections(g, flat(g, x))
    rows = m if mode == "complete" else shortest(m, n)
    upper = g.Trilu(vectors, upper=1)
    r = upper if rows == m else g.Slice(upper, [0], [rows], [1])
    q = make_full(g, [0], 0, x.dtype) if mode == "r" else unflat(g, orthogonal(g, vectors, taus, rows), (*batch, m, rows))
    return [q, unflat(g, r, (*batch, rows, n))]


@translates(aten.geqrf.default)
def geqrf(g: Graph, x: Tensor) -> list[Tensor]:
    """geqrf(A) → the function `geqrf`: a Loop over columns."""
    vectors, taus = reflections(g, flat(g, x))
    return [unflat(g, vectors, x.sizes), unflat(g, taus, (*x.sizes[:-2], shortest(*x.sizes[-2:])))]


@translates(aten.linalg_householder_product.default, aten.orgqr.default)
def householder_product(g: Graph, vectors: Tensor, taus: Tensor) -> Tensor:
    """linalg_householder_product(V, tau) → the function `reflected` of the identity matrix."""
    return unflat(g, orthogonal(g, flat(g, vectors), flat(g, taus, 1), vectors.sizes[-1]), vectors.sizes)


@translates(aten.ormqr.default)
def ormqr(g: Graph, vectors: Tensor, taus: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """ormqr(V, tau, C, left, transpose) → the function `reflected`, or `reflected_back` for Qᵀ; Cᵀ if Q is on the right."""
    c, back = (other, transpose) if left else (transpose_matrices(g, other), not transpose)
    routine = routines.reflected_back if back else routines.reflected
    made = call_local_function(g, routine.__name__, routine, flat(g, vectors), flat(g, taus, 1), flat(g, c))[0]
    made = unflat(g, made, c.sizes)
    return made if left else transpose_matrices(g, made)
