"""Elementwise arithmetic: sums, products, quotients, bounds. See also pointwise_powers.py and pointwise_functions.py."""

from __future__ import annotations

import math
from typing import TypeGuard

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..ir.dtypes import BOOL, FLOAT, FLOATS, HALVES, INT64, TORCH, UINT8, UINT16, UINT32, UINT64, onnx_dtype
from ..ir.expressions import Number
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates

UNSIGNED = (UINT8, UINT16, UINT32, UINT64)


def reals(g: Graph, *operands: Operand) -> list[Tensor]:
    """Return all operands in the floating dtype that torch computes in: integers become the default dtype."""
    dtype = g.common_dtype(*operands)
    return [g.cast(operand, dtype if dtype in FLOATS else onnx_dtype(torch.get_default_dtype())) for operand in operands]


def wide(g: Graph, *operands: Operand) -> list[Tensor]:
    """Return the operands like `reals`, but half precision in float32, as torch's kernels compute formulas of several steps."""
    dtype = reals(g, *operands)[0].dtype
    return [g.cast(operand, FLOAT if dtype in HALVES else dtype) for operand in operands]


def where(g: Graph, condition: Tensor, yes: Operand, no: Operand) -> Tensor:
    """Append Where; one branch may be a number, which gets the dtype of the other."""
    dtype = next(branch.dtype for branch in (yes, no) if isinstance(branch, Tensor))
    return g.Where(condition, g.cast(yes, dtype), g.cast(no, dtype))


def is_number(value: Operand | None) -> TypeGuard[float]:
    """Return whether a value is a number that is known at the export."""
    return isinstance(value, (int, float))


def _is_too_fine(dtype: ir.DataType, *operands: Operand) -> bool:
    """Return whether half precision cannot represent a number, such as 1e5 or 1e-9 in float16: torch's kernels use float32."""
    if dtype not in HALVES:
        return False
    held = torch.finfo(TORCH[dtype])
    return any(math.isfinite(number) and not held.tiny <= abs(number) <= held.max for number in operands if is_number(number) and number)


def _times(g: Graph, x: Tensor, factor: Operand) -> Tensor:
    return x if is_number(factor) and factor == 1 else g.Mul(x, factor)


@translates(aten.add.Tensor, aten.add.Scalar)
def add(g: Graph, a: Operand, b: Operand, alpha: Number = 1) -> Tensor:
    """add(a, b, alpha=1) → a + alpha·b: Add, Mul; Or for booleans; nothing for integers if b is 0."""
    is_zero = is_number(b) and b == 0
    a, b = g.promote(a, b)
    if is_zero and a.dtype not in FLOATS:  # for floats, -0.0 + 0 is 0.0
        return a
    if a.dtype == BOOL:
        return g.Or(a, b if alpha == 1 else g.And(b, alpha))
    return g.Add(a, _times(g, b, alpha))


@translates(aten.sub.Tensor, aten.sub.Scalar, aten.subtract.Tensor, aten.subtract.Scalar)
def sub(g: Graph, a: Operand, b: Operand, alpha: Number = 1) -> Tensor:
    """sub(a, b, alpha=1) → a - alpha·b: Sub, Mul."""
    a, b = g.promote(a, b)
    return g.Sub(a, _times(g, b, alpha))


@translates(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(g: Graph, a: Operand, b: Operand, alpha: Number = 1) -> Tensor:
    """rsub(a, b, alpha=1) → b - alpha·a: Sub, Mul."""
    return sub(g, b, a, alpha)


@translates(aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor, aten.multiply.Scalar)
def mul(g: Graph, a: Operand, b: Operand) -> Tensor:
    """mul(a, b) → Mul, in float32 if half precision cannot represent a number; And for booleans."""
    x, y = g.promote(a, b)
    if x.dtype == BOOL:
        return g.And(x, y)
    return g.cast(g.Mul(*wide(g, a, b)), x.dtype) if _is_too_fine(x.dtype, a, b) else g.Mul(x, y)


@translates(
    aten.div.Tensor, aten.div.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode, aten.true_divide.Tensor, aten.true_divide.Scalar,
    aten.divide.Tensor, aten.divide.Scalar, aten.divide.Tensor_mode, aten.divide.Scalar_mode,
)  # fmt: skip
def div(g: Graph, a: Operand, b: Operand, rounding_mode: str | None = None) -> Tensor:
    """div(a, b, rounding_mode=None) → Div of floats, also for integers; "floor" and "trunc" like `floor_divide` and `trunc`."""
    if rounding_mode == "floor":
        return floor_divide(g, a, b)
    if rounding_mode is None:
        x, y = reals(g, a, b)
        return g.cast(g.Div(*wide(g, a, b)), x.dtype) if _is_too_fine(x.dtype, a, b) else g.Div(x, y)
    a, b = g.promote(a, b)
    return truncate(g, g.Div(a, b)) if a.dtype in FLOATS else g.Div(a, b)


def truncate(g: Graph, x: Tensor) -> Tensor:
    """Return floats rounded towards zero."""
    return g.Where(g.Less(x, 0), g.Ceil(x), g.Floor(x))


@translates(aten.floor_divide.default, aten.floor_divide.Scalar, aten.floor_divide_.Tensor)
def floor_divide(g: Graph, a: Operand, b: Operand) -> Tensor:
    """floor_divide(a, b) → (a - Mod(a, b)) / b for integers, whose Div truncates; for floats Div, Mod and corrections."""
    x, y = g.promote(a, b)
    if x.dtype in FLOATS:
        x, y = wide(g, a, b)
        return _floor_of_reals(g, x, y, b)
    if x.dtype in UNSIGNED:
        return g.Div(x, y)
    x, y = g.cast(x, INT64), g.cast(y, INT64)
    return g.Div(g.Sub(x, g.Mod(x, y)), y)


def _floor_of_reals(g: Graph, x: Tensor, y: Tensor, given: Operand) -> Tensor:
    """Return the floor of x/y as torch computes it: (x - fmod(x, y)) / y, less one if the remainder has the other sign; x/y for y = 0.

    For a power of two it is Floor of x/y, but NaN for infinities.
    """
    if is_number(given) and math.frexp(given)[0] in (0.5, -0.5):
        return g.Add(g.Floor(g.Div(x, y)), g.Sub(x, x))
    rest = g.Mod(x, y, fmod=1)
    quotient = g.Div(g.Sub(x, rest), y)
    rounded = g.Round(g.Where(_opposite(g, rest, y, given), g.Sub(quotient, 1), quotient))
    return rounded if is_number(given) and given else g.Where(g.Equal(y, 0), g.Div(x, y), rounded)


def _opposite(g: Graph, rest: Tensor, divisor: Tensor, given: Operand) -> Tensor:
    """Return whether a remainder is not 0 and its sign differs from that of the divisor."""
    if is_number(given):
        return g.Less(rest, 0) if given > 0 else g.Greater(rest, 0)
    return g.Less(g.Mul(g.Sign(rest), divisor), 0)


@translates(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(g: Graph, a: Operand, b: Operand) -> Tensor:
    """remainder(a, b), with the sign of b → Mod; for floats Mod(fmod=1), plus b if the signs differ."""
    x, y = g.promote(a, b)
    if x.dtype not in FLOATS:
        return g.Mod(x, y)
    x, y = wide(g, a, b)
    rest = g.Mod(x, y, fmod=1)
    return g.Where(_opposite(g, rest, y, b), g.Add(rest, y), rest)


@translates(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(g: Graph, a: Operand, b: Operand) -> Tensor:
    """fmod(a, b), with the sign of a → Mod(fmod=1); for int64, where Mod uses float64, a less the truncated quotient times b."""
    x, y = g.promote(a, b)
    if x.dtype != INT64:
        return g.Mod(x, y, fmod=1)
    divisor = g.Where(g.Equal(y, 0), g.const(1, INT64), y)  # eager raises for 0, where Div would crash
    return g.Sub(x, g.Mul(g.Div(x, divisor), divisor))


@translates(aten.square.default)
def square(g: Graph, x: Tensor) -> Tensor:
    """square(x) → Mul."""
    x = g.cast(x, g.dtype)
    return g.Mul(x, x)


@translates(aten.clamp.default, aten.clamp.Tensor, aten.clip.default, aten.clip.Tensor)
def clamp(g: Graph, x: Tensor, low: Operand | None = None, high: Operand | None = None) -> Tensor:
    """clamp(x, min?, max?) → Clip between two numbers, else Max and Min: with one bound, Clip makes infinities finite."""
    between = all(is_number(bound) and bound == bound for bound in (low, high))
    dtype = g.common_dtype(x, *[bound for bound in (low, high) if bound is not None])
    x = g.cast(x, dtype)
    least, most = (None if bound is None else g.cast(bound, dtype) for bound in (low, high))
    if between:
        return append_clip(g, x, least, most)
    x = x if least is None else larger(g, x, least)
    return x if most is None else smaller(g, x, most)


def append_clip(g: Graph, x: Tensor, low: Operand, high: Operand) -> Tensor:
    """Append Clip; for int64 two Where, as in `larger`."""
    least, most = g.cast(low, x.dtype), g.cast(high, x.dtype)
    return smaller(g, larger(g, x, least), most) if x.dtype == INT64 else g.Clip(x, least, most)


def larger(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """Append Max; Where for int64, because ONNX Runtime's Max compares some numbers from 2^31 on incorrectly."""
    return g.Where(g.Greater(a, b), a, b) if a.dtype == INT64 else g.Max(a, b)


def smaller(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """Append Min; Where for int64, as in `larger`."""
    return g.Where(g.Less(a, b), a, b) if a.dtype == INT64 else g.Min(a, b)


@translates(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(g: Graph, x: Tensor, low: Operand) -> Tensor:
    """clamp_min(x, min) → Max."""
    return clamp(g, x, low)


@translates(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(g: Graph, x: Tensor, high: Operand) -> Tensor:
    """clamp_max(x, max) → Min."""
    return clamp(g, x, None, high)


@translates(aten.maximum.default, aten.max.other)
def maximum(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """maximum(a, b), NaN if either is → Max; Or for booleans, Where for int64."""
    a, b = g.promote(a, b)
    return g.Or(a, b) if a.dtype == BOOL else larger(g, a, b)


@translates(aten.minimum.default, aten.min.other)
def minimum(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """minimum(a, b), NaN if either is → Min; And for booleans, Where for int64."""
    a, b = g.promote(a, b)
    return g.And(a, b) if a.dtype == BOOL else smaller(g, a, b)


@translates(aten.fmax.default)
def fmax(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """fmax(a, b), NaN only if both are → a where a ≥ b or b is NaN, else b: Where; Max for integers."""
    a, b = g.promote(a, b)
    return g.Where(g.Or(g.GreaterOrEqual(a, b), g.IsNaN(b)), a, b) if a.dtype in FLOATS else maximum(g, a, b)


@translates(aten.fmin.default)
def fmin(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """fmin(a, b), NaN only if both are → a where a ≤ b or b is NaN, else b: Where; Min for integers."""
    a, b = g.promote(a, b)
    return g.Where(g.Or(g.LessOrEqual(a, b), g.IsNaN(b)), a, b) if a.dtype in FLOATS else minimum(g, a, b)


@translates(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(g: Graph, start: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """lerp(a, b, w) → a + w·(b - a) where |w| < 0.5, else b - (1 - w)·(b - a)."""
    a, b, w = wide(g, start, end, weight)
    way = g.Sub(b, a)
    if is_number(weight):
        return g.Add(a, g.Mul(way, weight)) if abs(weight) < 0.5 else g.Sub(b, g.Mul(way, 1 - weight))
    return g.Where(g.Less(g.Abs(w), 0.5), g.Add(a, g.Mul(way, w)), g.Sub(b, g.Mul(way, g.Sub(1, w))))


@translates(aten.addcmul.default)
def addcmul(g: Graph, x: Tensor, a: Tensor, b: Tensor, value: Number = 1) -> Tensor:
    """addcmul(x, a, b, value=1) → x + value·a·b: Mul, Add."""
    x, a, b = g.promote(x, a, b)
    return g.Add(x, g.Mul(_times(g, a, value), b))


@translates(aten.addcdiv.default)
def addcdiv(g: Graph, x: Tensor, a: Tensor, b: Tensor, value: Number = 1) -> Tensor:
    """addcdiv(x, a, b, value=1) → x + value·a/b: Div, Mul, Add."""
    x, a, b = g.promote(x, a, b)
    return g.Add(x, g.Div(_times(g, a, value), b))


@translates(aten.hypot.default)
def hypot(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """hypot(a, b) → m·√(1 + (n/m)²) of the larger and the smaller magnitude, where no square overflows; inf if either is, even for NaN."""
    a, b = (g.Abs(value) for value in wide(g, a, b))
    large, small = g.Max(a, b), g.Min(a, b)
    ratio = where(g, g.Equal(large, small), 1, g.Div(small, large))
    infinite = g.Or(g.Equal(a, math.inf), g.Equal(b, math.inf))
    return where(g, infinite, math.inf, g.Mul(large, g.Sqrt(g.Add(g.Mul(ratio, ratio), 1))))


@translates(aten.signbit.default)
def signbit(g: Graph, x: Tensor) -> Tensor:
    """signbit(x) → x < 0, or 1/x < 0 for negative zero; from opset 26 on BitCast, Less, which also detect the sign of a NaN."""
    if x.dtype == BOOL:
        return g.And(x, False)
    if x.dtype in FLOATS and g.opset >= 26:
        same_size = ir.DataType[f"INT{x.dtype.bitwidth}"]
        return g.Less(g.op("BitCast", x, to=same_size), 0)
    negative = g.Less(x, 0)
    return g.Or(negative, g.Less(g.Reciprocal(x), 0)) if x.dtype in FLOATS else negative


@translates(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(g: Graph, a: Operand, b: Operand) -> Tensor:
    """copysign(a, b) → Where the sign bit of b is set, -|a|, else |a|."""
    x, y = reals(g, a, b)
    size = g.Abs(x)
    if is_number(b):
        return g.Neg(size) if math.copysign(1, b) < 0 else size
    return g.Where(signbit(g, y), g.Neg(size), size)


@translates(aten.heaviside.default)
def heaviside(g: Graph, x: Tensor, at_zero: Tensor) -> Tensor:
    """heaviside(x, v) → Where x is 0, v, else 1 for positive numbers: Equal, Greater, Where."""
    if x.dtype == BOOL:
        return g.Or(x, at_zero)
    return g.Where(g.Equal(x, 0), at_zero, g.cast(g.Greater(x, 0), x.dtype))
