"""Tensors of numbers: constants, ranges, zeros and ones, the identity matrix. Random numbers are in random.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
import sympy
import torch

from ..compat.operators import aten
from ..compat.symbols import FloorDiv
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE, FLOAT, FLOATS, INT64, TORCH
from ..ir.expressions import Number, Size
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates

SMALL = 256  # a tensor of known numbers with at most this many elements is a constant


def is_small(sizes: Sequence[Size]) -> bool:
    """Return whether a tensor of these sizes may be stored as a constant."""
    return all(isinstance(size, int) for size in sizes) and math.prod(sizes) <= SMALL


def make_full(g: Graph, sizes: Sequence[Size], number: Operand, dtype: ir.DataType) -> Tensor:
    """Return a tensor of one number (or of the element of a tensor): a constant, or Expand."""
    if isinstance(number, (int, float)) and is_small(sizes):
        return g.const(torch.full(tuple(sizes), number, dtype=TORCH[dtype]), dtype)
    return expand_scalar(g, sizes, number, dtype)


def expand_scalar(g: Graph, sizes: Sequence[Size], number: Operand, dtype: ir.DataType) -> Tensor:
    """Return one number (or the element of a tensor) in these sizes by Expand, even if they are known."""
    value = g.scalar(number, dtype)
    return g.set_sizes(g.Expand(value, list(sizes)), sizes) if sizes else value


def make_range(g: Graph, size: Size, start: Size = 0, step: Size = 1) -> Tensor:
    """Return start, start + step, … as int64 (size,)."""
    if is_small([size]) and isinstance(start, int) and isinstance(step, int):
        return g.const([start + step * i for i in range(size)], INT64)
    bounds = [g.scalar(number, INT64) for number in (start, start + step * size, step)]
    return g.set_sizes(g.Range(*bounds), (size,))


def identity(g: Graph, rows: Size, columns: Size, dtype: ir.DataType, offset: int = 0) -> Tensor:
    """Return ones on a diagonal, zeros elsewhere, (rows, columns): a constant, or EyeLike."""
    if is_small([rows, columns]):
        return g.const(torch.ones(rows, columns).tril(offset).triu(offset), dtype)
    made = g.EyeLike(make_full(g, [rows, columns], 0, FLOAT if dtype in FLOATS else INT64), k=offset)
    return g.set_sizes(g.cast(made, dtype), (rows, columns))


@translates(
    aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default, aten.empty.memory_format, aten.empty_like.default,
    aten.new_empty.default, aten.empty_strided.default, aten.new_empty_strided.default, aten.empty_permuted.default,
)  # fmt: skip
def zeros(g: Graph, *_: object, dtype: torch.dtype | None = None) -> Tensor:
    """zeros(size), zeros_like(x), zero_(x), empty(size), … → a constant, or Expand of 0."""
    return make_full(g, g.sizes, 0, g.dtype)


@translates(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(g: Graph, *_: object, dtype: torch.dtype | None = None) -> Tensor:
    """ones(size), ones_like(x), new_ones(x, size) → a constant, or Expand of 1."""
    return make_full(g, g.sizes, 1, g.dtype)


@translates(aten.full.default, aten.full_like.default)
def full(g: Graph, _: object, fill_value: Number, dtype: torch.dtype | None = None) -> Tensor:
    """full(size, value), full_like(x, value) → a constant, or Expand of the value."""
    return make_full(g, g.sizes, fill_value, g.dtype)


@translates(aten.new_full.default)
def new_full(g: Graph, x: Tensor, size: Sequence[Size], fill_value: Number, dtype: torch.dtype | None = None) -> Tensor:
    """new_full(x, size, value) → a constant, or Expand of the value."""
    return make_full(g, g.sizes, fill_value, g.dtype)


@translates(aten.scalar_tensor.default)
def scalar_tensor(g: Graph, number: Operand, dtype: torch.dtype | None = None) -> Tensor:
    """scalar_tensor(number) → a constant, or the symbolic number."""
    return g.scalar(number, g.dtype)


@translates(aten.arange.default, aten.arange.start, aten.arange.start_step)
def arange(g: Graph, *bounds: Number, dtype: torch.dtype | None = None) -> Tensor:
    """arange(start=0, end, step=1) → a constant, or Range for integers; for fractions start + step·Range in float64, as in torch."""
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if is_small(g.sizes) and not any(isinstance(bound, sympy.Basic) for bound in bounds):
        return g.const(torch.arange(start, end, step, dtype=TORCH[g.dtype]), g.dtype)
    if g.dtype not in FLOATS:
        start, step = (int(number) if isinstance(number, float) else number for number in (start, step))
    if _is_whole(start) and _is_whole(step):
        return make_range(g, g.sizes[0], start, step)
    steps = g.Mul(g.cast(make_range(g, g.sizes[0]), DOUBLE), g.scalar(step, DOUBLE))
    return g.Add(steps, g.scalar(start, DOUBLE))


def _is_whole(number: Operand) -> bool:
    return isinstance(number, int) or (isinstance(number, sympy.Basic) and bool(number.is_integer))


@translates(aten.linspace.default, aten.linspace.Tensor_Tensor, aten.linspace.Tensor_Scalar, aten.linspace.Scalar_Tensor)
def linspace(g: Graph, start: Operand, end: Operand, steps: Size, dtype: torch.dtype | None = None) -> Tensor:
    """linspace(start, end, steps) → a constant, or the first half computed from the start and the second from the end, as in torch."""
    if isinstance(start, (int, float)) and isinstance(end, (int, float)) and is_small([steps]):
        return g.const(torch.linspace(start, end, steps, dtype=TORCH[g.dtype]), g.dtype)
    return make_linspace(g, start, end, steps, DOUBLE if g.dtype not in FLOATS or g.dtype == DOUBLE else FLOAT)


def make_linspace(g: Graph, start: Operand, end: Operand, steps: Size, dtype: ir.DataType) -> Tensor:
    """Return this many numbers from the start to the end, as torch computes them."""
    first, last, count = (g.scalar(number, dtype) for number in (start, end, steps))
    gaps, index = g.Sub(count, 1), g.cast(make_range(g, steps), dtype)
    step = g.Div(g.Sub(last, first), g.Max(gaps, 1))
    half = g.scalar(sympy.Max(FloorDiv(steps, 2), 1), dtype)
    return g.Where(g.Less(index, half), g.Add(first, g.Mul(step, index)), g.Sub(last, g.Mul(step, g.Sub(gaps, index))))


@translates(aten.logspace.default)
def logspace(g: Graph, start: Operand, end: Operand, steps: Size, base: float = 10.0, dtype: torch.dtype | None = None) -> Tensor:
    """logspace(start, end, steps, base) → a constant, or base to the power of linspace."""
    if isinstance(start, (int, float)) and isinstance(end, (int, float)) and is_small([steps]):
        return g.const(torch.logspace(start, end, steps, base, dtype=TORCH[g.dtype]), g.dtype)
    exponents = make_linspace(g, start, end, steps, DOUBLE)
    return g.Pow(g.const(base, DOUBLE), exponents)


@translates(aten.eye.default, aten.eye.m)
def eye(g: Graph, *_: Size, dtype: torch.dtype | None = None) -> Tensor:
    """eye(n, m=n) → a constant, or EyeLike."""
    rows, columns = g.sizes
    return identity(g, rows, columns, g.dtype)


@translates(aten.tril_indices.default)
def tril_indices(g: Graph, rows: Size, columns: Size, offset: Size = 0, dtype: torch.dtype | None = None) -> Tensor:
    """tril_indices(rows, columns, offset) → NonZero of Trilu of ones."""
    return g.NonZero(g.Trilu(make_full(g, [rows, columns], 1, INT64), g.scalar(offset, INT64), upper=0))


@translates(aten.triu_indices.default)
def triu_indices(g: Graph, rows: Size, columns: Size, offset: Size = 0, dtype: torch.dtype | None = None) -> Tensor:
    """triu_indices(rows, columns, offset) → NonZero of Trilu of ones."""
    return g.NonZero(g.Trilu(make_full(g, [rows, columns], 1, INT64), g.scalar(offset, INT64), upper=1))


@translates(aten.one_hot.default)
def one_hot(g: Graph, x: Tensor, num_classes: Size = -1) -> Tensor:
    """one_hot(x, classes) → OneHot with the captured number of classes, or the largest value plus one."""
    count = g.Add(g.ReduceMax(x, keepdims=0), 1) if num_classes == -1 else g.scalar(g.sizes[-1], INT64)
    classes, values = count, g.const([0, 1], INT64)
    if x.rank == 0:
        return g.Squeeze(g.OneHot(g.Unsqueeze(x, [0]), classes, values), [0])
    return g.OneHot(x, classes, values)


@translates(aten.resize_.default)
def resize(g: Graph, x: Tensor, size: Sequence[Size], memory_format: torch.memory_format | None = None) -> Tensor:
    """resize_(x, sizes) of a tensor without elements → zeros."""
    if 0 not in x.sizes:
        raise Untranslated("only a tensor without elements can be resized")
    return make_full(g, size, 0, x.dtype)
