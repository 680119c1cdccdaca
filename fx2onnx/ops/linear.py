"""Matrix products: linear layers, matmul and related operators. See also einsum.py and attention.py."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import zip_longest

import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import BOOL, DOUBLE, FLOATS
from ..ir.expressions import Number
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .reduce import axes_of, never_empty, total


@translates(aten.linear.default)
def linear(g: Graph, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """linear(x, w, b?) → Gemm for a matrix, else MatMul with the transposed weight, and Add."""
    if x.rank == 2 and weight.rank == 2 and x.dtype in FLOATS:
        return g.Gemm(x, weight, bias, transB=1)
    product = matmul(g, x, weight if weight.rank == 1 else g.set_sizes(g.transpose_matrix(weight), weight.sizes[::-1]))
    return product if bias is None else g.Add(product, bias)


@translates(
    aten.matmul.default, aten.linalg_matmul.default, aten.mm.default, aten.bmm.default, aten.mv.default, aten.dot.default, aten.vdot.default
)
def matmul(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """matmul(a, b), mm, bmm, mv, dot → MatMul; for vectors and axes that may be empty Unsqueeze, MatMul, Squeeze."""
    if a.dtype == BOOL:
        raise Untranslated("torch does not multiply boolean matrices")
    if _all_filled(a, b) or a.rank == b.rank == 1:
        return g.MatMul(a, b)
    if a.rank == 1:
        row = g.set_sizes(g.Unsqueeze(a, [0]), (1, *a.sizes))
        return g.Squeeze(_matmul_batches(g, row, b), [-2])
    if b.rank == 1:
        return g.Squeeze(g.MatMul(a, g.Unsqueeze(b, [1])), [-1])
    return _matmul_batches(g, a, b)


def _all_filled(*tensors: Tensor) -> bool:
    return all(never_empty(x, range(x.rank)) for x in tensors)


def _matmul_batches(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """Append MatMul (*batch, m, k) × (*batch, k, n). If an axis may be empty and batches differ, they are expanded first.

    ONNX Runtime does not broadcast an empty batch, and if the summed axis is empty, it returns uninitialised memory.
    """
    of_a, of_b = tuple(a.sizes[:-2]), tuple(b.sizes[:-2])
    if b.rank == 2 or of_a == of_b or _all_filled(a, b):
        return g.MatMul(a, b)
    pairs = zip_longest(reversed(of_a), reversed(of_b), fillvalue=1)
    batch = [of_b_too if size == 1 else size for size, of_b_too in pairs][::-1]
    a, b = (x if list(x.sizes[:-2]) == batch else g.Expand(x, [*batch, *x.sizes[-2:]]) for x in (a, b))
    return g.MatMul(a, b)


@translates(aten.mm.dtype, aten.bmm.dtype)
def matmul_as(g: Graph, a: Tensor, b: Tensor, out_dtype: torch.dtype) -> Tensor:
    """mm(a, b, dtype) → MatMul in that dtype."""
    return g.MatMul(g.cast(a, out_dtype), g.cast(b, out_dtype))


@translates(aten.outer.default, aten.ger.default)
def outer(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """outer(a, b) → Mul of a column and a row; And for booleans."""
    a, b = g.promote(a, b)
    return g.op("And" if a.dtype == BOOL else "Mul", g.Unsqueeze(a, [1]), b)


def _plus(g: Graph, c: Tensor, product: Tensor, beta: Number, alpha: Number) -> Tensor:
    """Return beta·c + alpha·product; if beta is 0, c is ignored, even if it contains NaN."""
    scaled = product if alpha == 1 else g.Mul(product, alpha)
    if beta == 0:
        return scaled
    return g.Add(c if beta == 1 else g.Mul(c, beta), scaled)


@translates(aten.addmm.default)
def addmm(g: Graph, c: Tensor, a: Tensor, b: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """addmm(c, a, b, beta, alpha) → Gemm; MatMul, Mul, Add if Gemm does not support the dtype or the factors."""
    if a.dtype not in FLOATS or not _gemm_takes(a, beta, alpha):
        return _plus(g, c, g.MatMul(a, b), beta, alpha)
    scale, keep = (float(number) if number != 1 else None for number in (alpha, beta))
    return g.Gemm(a, b, alpha=scale) if beta == 0 else g.Gemm(a, b, c, alpha=scale, beta=keep)


def _gemm_takes(a: Tensor, beta: Number, alpha: Number) -> bool:
    """Return whether Gemm is correct: its factors are float32, and ONNX Runtime ignores beta if the summed axis is empty."""
    if not all(isinstance(number, (int, float)) for number in (beta, alpha)) or (beta not in (0, 1) and not never_empty(a, [1])):
        return False
    return a.dtype != DOUBLE or all(torch.tensor(number, dtype=torch.float32).item() == number for number in (beta, alpha))


@translates(aten.addmv.default)
def addmv(g: Graph, c: Tensor, a: Tensor, b: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """addmv(c, matrix, vector, beta, alpha) → MatMul, Mul, Add."""
    return _plus(g, c, matmul(g, a, b), beta, alpha)


@translates(aten.baddbmm.default)
def baddbmm(g: Graph, c: Tensor, a: Tensor, b: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """baddbmm(c, a, b, beta, alpha) → MatMul, Mul, Add."""
    return _plus(g, c, g.MatMul(a, b), beta, alpha)


@translates(aten.addbmm.default)
def addbmm(g: Graph, c: Tensor, a: Tensor, b: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """addbmm(c, a, b, beta, alpha) → MatMul, the sum over the first axis, Mul, Add."""
    products = g.set_sizes(g.MatMul(a, b), (*a.sizes[:2], b.sizes[2]))
    return _plus(g, c, total(g, products, [0]), beta, alpha)


@translates(aten.addr.default)
def addr(g: Graph, c: Tensor, a: Tensor, b: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """addr(c, a, b, beta, alpha) → Mul of a column and a row, Mul, Add."""
    c, a, b = g.promote(c, a, b)
    return _plus(g, c, outer(g, a, b), beta, alpha)


@translates(aten.chain_matmul.default, aten.linalg_multi_dot.default)
def multi_dot(g: Graph, tensors: Sequence[Tensor]) -> Tensor:
    """multi_dot(tensors) → MatMul from left to right; the axis of a vector at an end is removed again."""
    first, last = tensors[0], tensors[-1]
    matrices = [*tensors]
    matrices[0] = first if first.rank == 2 else g.Unsqueeze(first, [0])
    matrices[-1] = last if last.rank == 2 else g.Unsqueeze(last, [1])
    product = reduce(g.MatMul, matrices)
    axes = [axis for axis, end in ((0, first), (1, last)) if end.rank == 1]
    return g.Squeeze(product, axes) if axes else product


@translates(aten.linalg_vecdot.default)
def vecdot(g: Graph, a: Tensor, b: Tensor, dim: int = -1) -> Tensor:
    """linalg_vecdot(a, b, dim) → Mul, ReduceSum."""
    a, b = g.promote(a, b)
    sizes = list(g.sizes)
    rank = max(a.rank, b.rank)
    longest = next((x.sizes[dim] for x in (a, b) if x.sizes[dim] != 1), 1)
    sizes.insert(dim % rank, longest)
    product = g.set_sizes(g.Mul(a, b), sizes)
    return total(g, product, axes_of(product, dim))


@translates(aten.kron.default)
def kron(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """kron(a, b) → Mul of tensors with interleaved axes of one element, and Reshape; And for booleans."""
    rank = max(a.rank, b.rank)
    a, b = g.promote(a, b)
    of_a, of_b = ([1] * (rank - x.rank) + list(x.sizes) for x in (a, b))
    wide = g.reshape_to(a, [size for n in of_a for size in (n, 1)])
    tall = g.reshape_to(b, [size for n in of_b for size in (1, n)])
    product = g.op("And" if a.dtype == BOOL else "Mul", wide, tall)
    return g.reshape_to(g.set_sizes(product, [size for pair in zip(of_a, of_b, strict=True) for size in pair]), g.sizes)


@translates(aten.linalg_cross.default, aten.cross.default)
def cross(g: Graph, a: Tensor, b: Tensor, dim: int | None = None) -> Tensor:
    """cross(a, b, dim) → a[1, 2, 0]·b[2, 0, 1] − a[2, 0, 1]·b[1, 2, 0]: Gather, Mul, Sub."""
    if dim is None:
        dim = -1 if g.at.target is aten.linalg_cross.default else a.sizes.index(3)
    a, b = g.promote(a, b)
    (a1, b1), (a2, b2) = (tuple(g.Gather(x, order, axis=dim) for x in (a, b)) for order in ([1, 2, 0], [2, 0, 1]))
    return g.Sub(g.Mul(a1, b2), g.Mul(a2, b1))


@translates(aten.matrix_power.default, aten.linalg_matrix_power.default)
def matrix_power(g: Graph, x: Tensor, n: int) -> Tensor:
    """matrix_power(x, n) → MatMul with squares, log₂(n) times."""
    if n <= 0:
        raise Untranslated("only powers from 1 are supported: use torch.linalg.inv for negative ones, and torch.eye for 0")
    square = x
    while n % 2 == 0:
        square, n = g.MatMul(square, square), n // 2
    power = square
    while n := n // 2:
        square = g.MatMul(square, square)
        power = g.MatMul(power, square) if n % 2 else power
    return power
