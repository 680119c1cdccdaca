"""LU with partial pivoting, determinants, inverses and solutions. Triangular systems are in linalg_triangular.py."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import sympy

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE, INT32, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..lower.local_functions import call_local_function
from ..translate.registry import translates
from .create import identity, make_full
from .linalg import lu as routines
from .linalg.matrices import flat, unflat


def factor_lu(g: Graph, x: Tensor) -> list[Tensor]:
    """Return LU (b, m, n), the one-based pivots (b, min(m, n)), the order of rows (b, m) and info (b,) of matrices (b, m, n)."""
    return call_local_function(g, "lu", routines.lu, x)


def _batch(x: Tensor) -> tuple[Size, ...]:
    return x.sizes[:-2]


def shortest(*sizes: Size) -> Size:
    """Return the smallest of these sizes."""
    if len(set(sizes)) == 1:
        return sizes[0]
    return min(sizes) if all(isinstance(size, int) for size in sizes) else sympy.Min(*sizes)


@translates(aten.linalg_lu_factor_ex.default)
def lu_factor_ex(g: Graph, x: Tensor, pivot: bool = True, check_errors: bool = False) -> list[Tensor]:
    """linalg_lu_factor_ex(A, pivot, check_errors) → the function `lu`: a Loop over columns."""
    _check_pivot(pivot)
    lu, pivots, _, info = factor_lu(g, flat(g, x))
    batch = _batch(x)
    return [unflat(g, lu, x.sizes), unflat(g, g.cast(pivots, INT32), (*batch, shortest(*x.sizes[-2:]))), unflat(g, info, batch)]


def _check_pivot(pivot: bool) -> None:
    if not pivot:
        raise Untranslated("pivot=False is not supported (torch supports it only on a GPU)")


@translates(aten.linalg_lu.default)
def lu(g: Graph, x: Tensor, pivot: bool = True) -> list[Tensor]:
    """linalg_lu(A, pivot) → the function `lu`, the permutation by Equal, and both triangles."""
    _check_pivot(pivot)
    factors, _, order, _ = factor_lu(g, flat(g, x))
    lower, upper = _triangles(g, factors, x)
    return [unflat(g, _permutation(g, order, x.dtype), g.sizes), lower, upper]


def _triangles(g: Graph, factors: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return L (…, m, k), with ones on its diagonal, and U (…, k, n) from the factors of matrices with the sizes of `x`."""
    *batch, m, n = x.sizes
    k = shortest(m, n)
    strict = g.Trilu(factors, g.const(-1, INT64), upper=0)
    lower = g.Add(_cut(g, strict, k, n, 2), identity(g, m, k, x.dtype))
    upper = _cut(g, g.Trilu(factors, upper=1), k, m, 1)
    return unflat(g, lower, (*batch, m, k)), unflat(g, upper, (*batch, k, n))


def _cut(g: Graph, x: Tensor, size: Size, before: Size, axis: int) -> Tensor:
    return x if size == before else g.Slice(x, [0], [size], [axis])


def _permutation(g: Graph, order: Tensor, dtype: ir.DataType) -> Tensor:
    """Return P (b, m, m) of A = P L U: ones at (order[i], i)."""
    size = g.Shape(order, start=1, end=2)
    rows = g.Range(g.const(0, INT64), g.Squeeze(size, [0]), g.const(1, INT64))
    return g.cast(g.Equal(g.Unsqueeze(rows, [1]), g.Unsqueeze(order, [1])), dtype)


@translates(aten.lu_unpack.default)
def lu_unpack(g: Graph, lu: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> list[Tensor]:
    """lu_unpack(LU, pivots) → both triangles, and a Loop over the pivots for the permutation."""
    nothing = make_full(g, [0], 0, lu.dtype)
    lower, upper = _triangles(g, flat(g, lu), lu) if unpack_data else (nothing, nothing)
    if not unpack_pivots:
        return [nothing, lower, upper]
    order = _order(g, pivots, lu.sizes[-2])
    return [unflat(g, _permutation(g, order, lu.dtype), g.sizes), lower, upper]


def _order(g: Graph, pivots: Tensor, rows: Size) -> Tensor:
    swaps = flat(g, pivots, 1)
    return call_local_function(g, "rows", routines.rows_after, g.cast(swaps, INT64), g.scalar(rows, INT64))[0]


@translates(aten.linalg_lu_solve.default)
def lu_solve(g: Graph, lu: Tensor, pivots: Tensor, b: Tensor, left: bool = True, adjoint: bool = False) -> Tensor:
    """linalg_lu_solve(LU, pivots, B, left, adjoint) → Gather of the rows, and two Loops over columns; in reverse order for Aᵀ."""
    b, backwards = (b, adjoint) if left else (transpose_matrices(g, b), not adjoint)
    batch = broadcast(_batch(lu), _batch(b))
    factors, right = (flat(g, spread(g, x, batch)) for x in (lu, b))
    order = _order(g, spread(g, pivots, batch, 1), lu.sizes[-1])
    solve = routines.lu_solve_transposed if backwards else routines.lu_solve
    solved = call_local_function(g, "lu_solve_transposed" if backwards else "lu_solve", solve, factors, order, right)[0]
    made = unflat(g, solved, (*batch, *b.sizes[-2:]))
    return made if left else transpose_matrices(g, made)


def transpose_matrices(g: Graph, x: Tensor) -> Tensor:
    """Return the transpose of each matrix."""
    rank = x.rank
    return g.set_sizes(g.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2]), (*x.sizes[:-2], x.sizes[-1], x.sizes[-2]))


def broadcast(*batches: Sequence[Size]) -> tuple[Size, ...]:
    """Return the sizes that these batch sizes broadcast to."""
    rank = max(map(len, batches))
    padded = [[1] * (rank - len(batch)) + list(batch) for batch in batches]
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in zip(*padded, strict=True))


def spread(g: Graph, x: Tensor, batch: Sequence[Size], rank: int = 2) -> Tensor:
    """Return the matrices (or vectors, for rank 1) expanded to these batch axes."""
    wanted = (*batch, *x.sizes[x.rank - rank :])
    return x if tuple(x.sizes) == wanted else g.set_sizes(g.Expand(x, list(wanted)), wanted)


@translates(aten.linalg_inv_ex.default)
def inv_ex(g: Graph, x: Tensor, check_errors: bool = False) -> list[Tensor]:
    """linalg_inv_ex(A, check_errors) → the function `lu`, and two Loops that solve for the identity matrix."""
    matrices = flat(g, x)
    factors, _, order, info = factor_lu(g, matrices)
    one = repeated_identity(g, matrices)
    made = call_local_function(g, "lu_solve", routines.lu_solve, factors, order, one)[0]
    return [unflat(g, made, x.sizes), unflat(g, info, _batch(x))]


def repeated_identity(g: Graph, matrices: Tensor) -> Tensor:
    """Return an identity matrix for each square matrix (b, n, n)."""
    one = identity(g, matrices.sizes[-2], matrices.sizes[-1], matrices.dtype)
    return g.set_sizes(g.Expand(one, list(matrices.sizes)), matrices.sizes)


@translates(aten._linalg_solve_ex.default)
def solve_ex(g: Graph, a: Tensor, b: Tensor, left: bool = True, check_errors: bool = False) -> list[Tensor]:
    """_linalg_solve_ex(A, B, left, check_errors) → the functions `lu` and `lu_solve`; the returned factors are of A."""
    vector = _is_vector(a, b)
    right = g.set_sizes(g.Unsqueeze(b, [-1]), (*b.sizes, 1)) if vector else b
    batch = broadcast(_batch(a), _batch(right))
    factors, pivots, order, info = factor_lu(g, flat(g, a))
    wide = unflat(g, factors, a.sizes), unflat(g, order, a.sizes[:-1])
    spread_factors, spread_order = flat(g, spread(g, wide[0], batch)), flat(g, spread(g, wide[1], batch, 1), 1)
    right = spread(g, right if left else transpose_matrices(g, right), batch)
    solve = routines.lu_solve if left else routines.lu_solve_transposed
    solved = call_local_function(g, "lu_solve" if left else "lu_solve_transposed", solve, spread_factors, spread_order, flat(g, right))[0]
    made = unflat(g, solved, right.sizes)
    made = made if left else transpose_matrices(g, made)
    result = g.reshape_to(made, g.sizes)
    pivots = unflat(g, g.cast(pivots, INT32), a.sizes[:-1])
    return [result, wide[0], pivots, unflat(g, info, _batch(a))]


def _is_vector(a: Tensor, b: Tensor) -> bool:
    """Return whether torch treats `b` as vectors: it has one axis, or the sizes of `a` without the last one."""
    return b.rank == 1 or (a.rank - 1 == b.rank and tuple(b.sizes) == tuple(a.sizes[:-1]))


@translates(aten.det.default, aten.linalg_det.default)
def det(g: Graph, x: Tensor) -> Tensor:
    """det(x) → Det, which ONNX Runtime supports only in float32; in float64 the function `lu`."""
    return unflat(g, _sign_and_product(g, factor_lu(g, flat(g, x)))[1], _batch(x)) if x.dtype == DOUBLE else g.Det(x)


@translates(aten._linalg_det.default)
def det_and_factors(g: Graph, x: Tensor) -> list[Tensor]:
    """_linalg_det(A) → the function `lu`, the product of its diagonal, and the sign of its swaps."""
    made = factor_lu(g, flat(g, x))
    pivots = unflat(g, g.cast(made[1], INT32), x.sizes[:-1])
    return [unflat(g, _sign_and_product(g, made)[1], _batch(x)), unflat(g, made[0], x.sizes), pivots]


def _sign_and_product(g: Graph, made: Sequence[Tensor]) -> list[Tensor]:
    """Return the sign of the swaps, the determinant, its sign and the logarithm of its absolute value, (b,) each."""
    return call_local_function(g, "determinant", routines.determinant, made[0], made[1])


@translates(aten._linalg_slogdet.default)
def slogdet(g: Graph, x: Tensor) -> list[Tensor]:
    """_linalg_slogdet(A) → the function `lu`, the signs of its diagonal and swaps, and the sum of its logarithms."""
    made = factor_lu(g, flat(g, x))
    _, _, sign, log = _sign_and_product(g, made)
    pivots = unflat(g, g.cast(made[1], INT32), x.sizes[:-1])
    return [unflat(g, sign, _batch(x)), unflat(g, log, _batch(x)), unflat(g, made[0], x.sizes), pivots]


@translates(aten.logdet.default)
def logdet(g: Graph, x: Tensor) -> Tensor:
    """logdet(A) → the function `lu`, and the sum of the logarithms of its diagonal; NaN if the determinant is negative."""
    _, _, sign, log = _sign_and_product(g, factor_lu(g, flat(g, x)))
    return unflat(g, g.Where(g.Less(sign, 0), g.scalar(float("nan"), x.dtype), log), _batch(x))
