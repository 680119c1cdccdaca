"""Elementwise logic and bits: comparisons, logical operators, NaN and infinity, selection by a mask, shifts."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ..compat.operators import OpOverload, aten
from ..errors import Untranslated
from ..ir.dtypes import BOOL, DOUBLE, FLOAT, FLOATS, INT64, UINT64
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates
from .pointwise import clamp, reals, where

BITS = 64


def comparison(op_type: str, *targets: OpOverload, negated: bool = False) -> Callable[[Graph, Operand, Operand], Tensor]:
    """Return the translation of a comparison, in the dtype that torch promotes both operands to."""

    @translates(*targets)
    def translation(g: Graph, a: Operand, b: Operand) -> Tensor:
        holds = g.op(op_type, *g.promote(a, b))
        return g.Not(holds) if negated else holds

    return translation


eq = comparison("Equal", aten.eq.Tensor, aten.eq.Scalar)
ne = comparison("Equal", aten.ne.Tensor, aten.ne.Scalar, aten.not_equal.Tensor, aten.not_equal.Scalar, negated=True)
lt = comparison("Less", aten.lt.Tensor, aten.lt.Scalar, aten.less.Tensor, aten.less.Scalar)
le = comparison("LessOrEqual", aten.le.Tensor, aten.le.Scalar, aten.less_equal.Tensor, aten.less_equal.Scalar)
gt = comparison("Greater", aten.gt.Tensor, aten.gt.Scalar, aten.greater.Tensor, aten.greater.Scalar)
ge = comparison("GreaterOrEqual", aten.ge.Tensor, aten.ge.Scalar, aten.greater_equal.Tensor, aten.greater_equal.Scalar)


def logical(op_type: str, *targets: OpOverload) -> Callable[..., Tensor]:
    """Return the translation of a logical operator on booleans; other numbers are true if they are not 0."""

    @translates(*targets)
    def translation(g: Graph, *operands: Tensor) -> Tensor:
        return g.op(op_type, *[g.cast(operand, BOOL) for operand in operands])

    return translation


logical_and = logical("And", aten.logical_and.default)
logical_or = logical("Or", aten.logical_or.default)
logical_xor = logical("Xor", aten.logical_xor.default)
logical_not = logical("Not", aten.logical_not.default)


def bitwise(op_type: str, *targets: OpOverload) -> Callable[..., Tensor]:
    """Return the translation of a bitwise operator: BitwiseAnd etc. for integers, And etc. for booleans."""

    @translates(*targets)
    def translation(g: Graph, *operands: Operand) -> Tensor:
        values = g.promote(*operands)
        return g.op(op_type if values[0].dtype == BOOL else f"Bitwise{op_type}", *values)

    return translation


bitwise_and = bitwise(
    "And", aten.bitwise_and.Tensor, aten.bitwise_and.Scalar, aten.bitwise_and.Scalar_Tensor,
    aten.__and__.Tensor, aten.__and__.Scalar, aten.__iand__.Tensor, aten.__iand__.Scalar,
)  # fmt: skip
bitwise_or = bitwise(
    "Or", aten.bitwise_or.Tensor, aten.bitwise_or.Scalar, aten.bitwise_or.Scalar_Tensor,
    aten.__or__.Tensor, aten.__or__.Scalar, aten.__ior__.Tensor, aten.__ior__.Scalar,
)  # fmt: skip
bitwise_xor = bitwise(
    "Xor", aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar, aten.bitwise_xor.Scalar_Tensor,
    aten.__xor__.Tensor, aten.__xor__.Scalar, aten.__ixor__.Tensor, aten.__ixor__.Scalar,
)  # fmt: skip
bitwise_not = bitwise("Not", aten.bitwise_not.default)


def _shift_bits(g: Graph, x: Tensor, count: Tensor, direction: str) -> Tensor:
    """Return the bits of x shifted in uint64, in two steps, because a count of 64 or more, or a negative one, clears all bits."""
    count = g.cast(count, UINT64)
    last = g.Min(count, BITS - 1)
    once = g.BitShift(g.cast(x, UINT64), last, direction=direction)
    return g.BitShift(once, g.cast(g.Greater(count, BITS - 1), UINT64), direction=direction)


def _integers(g: Graph, a: Operand, b: Operand) -> list[Tensor]:
    values = g.promote(a, b)
    if values[0].dtype in FLOATS:
        raise Untranslated("bit shifts of floating-point numbers are not supported")
    return values


@translates(
    aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_left_shift.Scalar_Tensor,
    aten.__lshift__.Tensor, aten.__lshift__.Scalar, aten.__ilshift__.Tensor, aten.__ilshift__.Scalar,
)  # fmt: skip
def left_shift(g: Graph, a: Operand, b: Operand) -> Tensor:
    """bitwise_left_shift(a, n) → Mul by 2ⁿ for a small number n, else BitShift."""
    x, count = _integers(g, a, b)
    if isinstance(b, int) and 0 <= b < x.dtype.itemsize * 8 - 1:
        return g.Mul(x, 1 << b)
    return g.cast(_shift_bits(g, x, count, "LEFT"), x.dtype)


@translates(
    aten.bitwise_right_shift.Tensor, aten.bitwise_right_shift.Tensor_Scalar, aten.bitwise_right_shift.Scalar_Tensor,
    aten.__rshift__.Tensor, aten.__rshift__.Scalar, aten.__irshift__.Tensor, aten.__irshift__.Scalar,
)  # fmt: skip
def right_shift(g: Graph, a: Operand, b: Operand) -> Tensor:
    """bitwise_right_shift(a, n), which keeps the sign → BitShift of x, or of ¬x for negative x, then ¬ again: BitwiseXor."""
    x, count = _integers(g, a, b)
    signs = g.Neg(g.cast(g.Less(x, 0), INT64))
    flipped = g.BitwiseXor(g.cast(x, INT64), signs)
    return g.BitwiseXor(g.cast(_shift_bits(g, flipped, count, "RIGHT"), INT64), signs)


def _never(g: Graph, x: Tensor) -> Tensor:
    """Return False for each element of a tensor that is not floating."""
    return g.And(x, False) if x.dtype == BOOL else g.Less(x, x)


@translates(aten.isnan.default)
def isnan(g: Graph, x: Tensor) -> Tensor:
    """isnan(x) → IsNaN."""
    return g.IsNaN(x) if x.dtype in FLOATS else _never(g, x)


@translates(aten.isinf.default)
def isinf(g: Graph, x: Tensor) -> Tensor:
    """isinf(x) → IsInf; |x| = inf in half precision, which IsInf supports only from opset 20 on."""
    if x.dtype not in FLOATS:
        return _never(g, x)
    return g.IsInf(x) if x.dtype in (FLOAT, DOUBLE) else g.Equal(g.Abs(x), math.inf)


@translates(aten.isfinite.default)
def isfinite(g: Graph, x: Tensor) -> Tensor:
    """isfinite(x) → |x| < inf: Abs, Less."""
    return g.Less(g.Abs(x), math.inf) if x.dtype in FLOATS else g.Equal(x, x)


@translates(aten.isposinf.default)
def isposinf(g: Graph, x: Tensor) -> Tensor:
    """isposinf(x) → Equal."""
    return g.Equal(x, math.inf) if x.dtype in FLOATS else _never(g, x)


@translates(aten.isneginf.default)
def isneginf(g: Graph, x: Tensor) -> Tensor:
    """isneginf(x) → Equal."""
    return g.Equal(x, -math.inf) if x.dtype in FLOATS else _never(g, x)


@translates(aten.nan_to_num.default)
def nan_to_num(g: Graph, x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """nan_to_num(x, nan=0, posinf?, neginf?) → a Where for each; Clip, Max or Min to the largest number by default."""
    if x.dtype not in FLOATS:
        return x
    filled = where(g, g.IsNaN(x), nan or 0.0, x)
    for infinity, value in ((math.inf, posinf), (-math.inf, neginf)):
        filled = filled if value is None else where(g, g.Equal(x, infinity), value, filled)
    largest = torch.finfo(g.result().dtype).max
    return clamp(g, filled, -largest if neginf is None else None, largest if posinf is None else None)


@translates(aten.where.self, aten.where.Scalar, aten.where.ScalarSelf, aten.where.ScalarOther)
def where_(g: Graph, condition: Tensor, yes: Operand, no: Operand) -> Tensor:
    """where(condition, a, b) → Where."""
    return g.Where(g.cast(condition, BOOL), g.cast(yes, g.dtype), g.cast(no, g.dtype))


@translates(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(g: Graph, x: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """masked_fill(x, mask, value) → Where."""
    return g.Where(g.cast(mask, BOOL), g.scalar(value, x.dtype), x)


@translates(aten.isclose.default)
def isclose(g: Graph, a: Tensor, b: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """isclose(a, b, rtol, atol, equal_nan) → equal, or |a - b| finite and at most atol + rtol·|b|."""
    close = g.Equal(*g.promote(a, b))
    if equal_nan and a.dtype in FLOATS:
        close = g.Or(close, g.And(g.IsNaN(a), g.IsNaN(b)))
    if rtol == 0 and atol == 0:
        return close
    x, y = reals(g, a, b)
    distance, allowed = g.Abs(g.Sub(x, y)), g.Add(g.Mul(g.Abs(y), rtol), atol)
    return g.Or(close, g.And(g.Less(distance, math.inf), g.LessOrEqual(distance, allowed)))
