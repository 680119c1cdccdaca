"""Cholesky factors, and systems with triangular matrices. LU is in linalg_lu.py."""

from __future__ import annotations

from ..compat.operators import aten
from ..ir.graph import Graph, Tensor
from ..lower.local_functions import call_local_function
from ..translate.registry import translates
from .linalg import cholesky as routines
from .linalg.matrices import flat, unflat
from .linalg_lu import broadcast, repeated_identity, spread, transpose_matrices

SOLVERS = {
    (False, False): routines.solve_lower,
    (True, False): routines.solve_upper,
    (False, True): routines.solve_unit_lower,
    (True, True): routines.solve_unit_upper,
}


def solve_triangle(g: Graph, a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """Return the solution of systems with one triangle of `a` (…, n, n), with broadcast batch axes."""
    batch = broadcast(a.sizes[:-2], b.sizes[:-2])
    right = spread(g, b, batch)
    routine = SOLVERS[upper, unit]
    made = call_local_function(g, routine.__name__, routine, flat(g, spread(g, a, batch)), flat(g, right))[0]
    return unflat(g, made, right.sizes)


@translates(aten.linalg_solve_triangular.default)
def solve_triangular(g: Graph, a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """linalg_solve_triangular(A, B, upper, left, unitriangular) → a function with a Loop over columns; Aᵀ and Bᵀ if A is on the right."""
    if left:
        return solve_triangle(g, a, b, upper, unitriangular)
    return transpose_matrices(g, solve_triangle(g, transpose_matrices(g, a), transpose_matrices(g, b), not upper, unitriangular))


@translates(aten.triangular_solve.default)
def triangular_solve(
    g: Graph, b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> list[Tensor]:
    """triangular_solve(B, A, upper, transpose, unitriangular) → the same function, and A."""
    made = (
        solve_triangle(g, transpose_matrices(g, a), b, not upper, unitriangular)
        if transpose
        else solve_triangle(g, a, b, upper, unitriangular)
    )
    return [made, spread(g, a, broadcast(a.sizes[:-2], b.sizes[:-2]))]


@translates(aten.linalg_cholesky_ex.default)
def cholesky_ex(g: Graph, x: Tensor, upper: bool = False, check_errors: bool = False) -> list[Tensor]:
    """linalg_cholesky_ex(A, upper, check_errors) → the function `cholesky`: a Loop over columns."""
    factor, info = call_local_function(g, "cholesky", routines.cholesky, flat(g, transpose_matrices(g, x) if upper else x))
    lower = unflat(g, factor, x.sizes)
    return [transpose_matrices(g, lower) if upper else lower, unflat(g, info, x.sizes[:-2])]


@translates(aten.cholesky.default)
def cholesky(g: Graph, x: Tensor, upper: bool = False) -> Tensor:
    """cholesky(A, upper) → the function `cholesky`."""
    return cholesky_ex(g, x, upper)[0]


@translates(aten.cholesky_solve.default)
def cholesky_solve(g: Graph, b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    """cholesky_solve(B, L, upper) → the function `cholesky_solve`: two Loops over columns."""
    batch = broadcast(factor.sizes[:-2], b.sizes[:-2])
    right, lower = spread(g, b, batch), spread(g, transpose_matrices(g, factor) if upper else factor, batch)
    made = call_local_function(g, "cholesky_solve", routines.cholesky_solve, flat(g, lower), flat(g, right))[0]
    return unflat(g, made, right.sizes)


@translates(aten.cholesky_inverse.default)
def cholesky_inverse(g: Graph, factor: Tensor, upper: bool = False) -> Tensor:
    """cholesky_inverse(L, upper) → the function `cholesky_solve` for the identity matrix."""
    lower = flat(g, transpose_matrices(g, factor) if upper else factor)
    made = call_local_function(g, "cholesky_solve", routines.cholesky_solve, lower, repeated_identity(g, lower))[0]
    return unflat(g, made, factor.sizes)
