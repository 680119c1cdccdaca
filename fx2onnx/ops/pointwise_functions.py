"""Functions of one number, and a few of two: roots, exponentials, logarithms, angles, rounding. See also activation.py, sigmoid.py."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..compat.operators import OpOverload, aten
from ..ir import float64_math
from ..ir.dtypes import BOOL, DOUBLE, FLOATS, INT64
from ..ir.float64_math import expm1_of, log1p_of
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates
from .pointwise import signbit, truncate, where, wide


def unary(
    op_type: str, *targets: OpOverload, in_double: Callable[[Graph, Tensor], Tensor] | None = None
) -> Callable[[Graph, Tensor], Tensor]:
    """Return the translation `f(x)` → one node, in the dtype of the result; by a formula in float64 if ONNX Runtime has no kernel."""

    @translates(*targets)
    def translation(g: Graph, x: Tensor) -> Tensor:
        x = g.cast(x, g.dtype)
        return in_double(g, x) if in_double and x.dtype == DOUBLE else g.op(op_type, x)

    return translation


def translate_by_formula(formula: Callable[[Graph, Tensor], Tensor], *targets: OpOverload) -> Callable[[Graph, Tensor], Tensor]:
    """Return the translation of a function of one real number by a formula, in float32 or float64."""

    @translates(*targets)
    def translation(g: Graph, x: Tensor) -> Tensor:
        return formula(g, *wide(g, x))

    return translation


absolute = unary("Abs", aten.abs.default, aten.absolute.default)
negative = unary("Neg", aten.neg.default, aten.negative.default)
sqrt = unary("Sqrt", aten.sqrt.default)
reciprocal = unary("Reciprocal", aten.reciprocal.default)
exp = unary("Exp", aten.exp.default)
log = unary("Log", aten.log.default)
sin = unary("Sin", aten.sin.default)
cos = unary("Cos", aten.cos.default)
tanh = unary("Tanh", aten.tanh.default)
tan = unary("Tan", aten.tan.default, in_double=float64_math.tan)
asin = unary("Asin", aten.asin.default, aten.arcsin.default, in_double=float64_math.asin)
acos = unary("Acos", aten.acos.default, aten.arccos.default, in_double=float64_math.acos)
atan = unary("Atan", aten.atan.default, aten.arctan.default, in_double=float64_math.atan)
sinh = unary("Sinh", aten.sinh.default, in_double=float64_math.sinh)
cosh = unary("Cosh", aten.cosh.default, in_double=float64_math.cosh)
asinh = unary("Asinh", aten.asinh.default, aten.arcsinh.default, in_double=float64_math.asinh)
acosh = unary("Acosh", aten.acosh.default, aten.arccosh.default, in_double=float64_math.acosh)
atanh = unary("Atanh", aten.atanh.default, aten.arctanh.default, in_double=float64_math.atanh)
erf = unary("Erf", aten.erf.default, aten.special_erf.default, in_double=float64_math.erf)
expm1 = translate_by_formula(expm1_of, aten.expm1.default, aten.special_expm1.default)
log1p = translate_by_formula(log1p_of, aten.log1p.default, aten.special_log1p.default)


@translates(aten.erfc.default, aten.special_erfc.default)
def erfc(g: Graph, x: Tensor) -> Tensor:
    """erfc(x) → 1 - Erf(x)."""
    x, *_ = wide(g, x)
    return float64_math.erfc(g, x) if x.dtype == DOUBLE else g.Sub(1, g.Erf(x))


@translates(aten.rsqrt.default)
def rsqrt(g: Graph, x: Tensor) -> Tensor:
    """rsqrt(x) → Reciprocal(Sqrt(x))."""
    return g.Reciprocal(g.Sqrt(g.cast(x, g.dtype)))


@translates(aten.exp2.default, aten.special_exp2.default)
def exp2(g: Graph, x: Tensor) -> Tensor:
    """exp2(x) → Pow(2, x)."""
    return g.Pow(g.const(2, g.dtype), g.cast(x, g.dtype))


@translates(aten.log2.default)
def log2(g: Graph, x: Tensor) -> Tensor:
    """log2(x) → Log(x) / Log(2), in float64, so that powers of two give integers."""
    return g.cast(g.Div(g.Log(g.cast(x, DOUBLE)), math.log(2)), g.dtype)


@translates(aten.log10.default)
def log10(g: Graph, x: Tensor) -> Tensor:
    """log10(x) → Log(x) / Log(10), in float64, so that powers of ten give integers."""
    return g.cast(g.Div(g.Log(g.cast(x, DOUBLE)), math.log(10)), g.dtype)


@translates(aten.angle.default)
def angle(g: Graph, x: Tensor) -> Tensor:
    """angle(x) → π where x < 0, else 0; NaN stays NaN: Less, Where, IsNaN."""
    x = g.cast(x, g.dtype)
    made = g.Where(g.Less(x, 0), g.const(math.pi, x.dtype), g.scalar(0, x.dtype))
    return g.Where(g.IsNaN(x), x, made)


@translates(aten.sign.default, aten.sgn.default)
def sign(g: Graph, x: Tensor) -> Tensor:
    """sign(x), 0 for NaN → Sign, and Where for floats; for int64 Greater less Less, because ONNX Runtime's Sign is wrong from 2^31 on."""
    if x.dtype == BOOL:
        return x
    if x.dtype == INT64:
        return g.Sub(g.cast(g.Greater(x, 0), INT64), g.cast(g.Less(x, 0), INT64))
    return where(g, g.IsNaN(x), 0, g.Sign(x)) if x.dtype in FLOATS else g.Sign(x)


def rounding(op_type: str, *targets: OpOverload) -> Callable[[Graph, Tensor], Tensor]:
    """Return the translation of a rounding operator: one node, or nothing for integers."""

    @translates(*targets)
    def translation(g: Graph, x: Tensor) -> Tensor:
        return g.op(op_type, x) if x.dtype in FLOATS else x

    return translation


floor = rounding("Floor", aten.floor.default)
ceil = rounding("Ceil", aten.ceil.default)
half_to_even = rounding("Round", aten.round.default)


@translates(aten.round.decimals, aten.special_round.default)
def round_decimals(g: Graph, x: Tensor, decimals: int = 0) -> Tensor:
    """round(x, decimals) → Round(x · 10^d) / 10^d; for negative d Round(x / 10^-d) · 10^-d."""
    if decimals == 0 or x.dtype not in FLOATS:
        return half_to_even(g, x)
    (x,), scale = wide(g, x), 10.0 ** abs(decimals)
    return g.Div(g.Round(g.Mul(x, scale)), scale) if decimals > 0 else g.Mul(g.Round(g.Div(x, scale)), scale)


@translates(aten.trunc.default, aten.fix.default)
def trunc(g: Graph, x: Tensor) -> Tensor:
    """trunc(x) → Where x < 0, Ceil, else Floor; nothing for integers."""
    return truncate(g, x) if x.dtype in FLOATS else x


@translates(aten.frac.default)
def frac(g: Graph, x: Tensor) -> Tensor:
    """frac(x) → Mod(x, 1, fmod=1)."""
    return g.Mod(x, 1, fmod=1)


@translates(aten.deg2rad.default)
def deg2rad(g: Graph, x: Tensor) -> Tensor:
    """deg2rad(x) → Mul."""
    return g.Mul(g.cast(x, g.dtype), math.pi / 180)


@translates(aten.rad2deg.default)
def rad2deg(g: Graph, x: Tensor) -> Tensor:
    """rad2deg(x) → Mul."""
    return g.Mul(g.cast(x, g.dtype), 180 / math.pi)


@translates(aten.sinc.default, aten.special_sinc.default)
def sinc(g: Graph, x: Tensor) -> Tensor:
    """sinc(x) → sin(πx) / πx, 1 at 0: Mul, Sin, Div, Where."""
    x, *_ = wide(g, x)
    angle = g.Mul(x, math.pi)
    return where(g, g.Equal(x, 0), 1, g.Div(g.Sin(angle), angle))


@translates(aten.logit.default, aten.special_logit.default)
def logit(g: Graph, x: Tensor, eps: float | None = None) -> Tensor:
    """logit(x, eps?) → Log(x / (1 - x)) for x between eps and 1 - eps: Clip, Sub, Div, Log."""
    x, *_ = wide(g, x)
    x = x if eps is None else g.Clip(x, eps, 1 - eps)
    return g.Log(g.Div(x, g.Sub(1, x)))


@translates(aten.atan2.default, aten.arctan2.default)
def atan2(g: Graph, y: Tensor, x: Tensor) -> Tensor:
    """atan2(y, x) → Atan(|y| / |x|), subtracted from π for negative x, with the sign of y; zeros have signs too."""
    y, x = wide(g, y, x)
    height, width = g.Abs(y), g.Abs(x)
    ratio = g.Where(g.Equal(height, width), g.cast(g.Greater(height, 0), x.dtype), g.Div(height, width))
    angle = float64_math.atan(g, ratio) if x.dtype == DOUBLE else g.Atan(ratio)
    angle = g.Where(signbit(g, x), g.Sub(math.pi, angle), angle)
    return g.Where(signbit(g, y), g.Neg(angle), angle)


@translates(aten.logaddexp.default)
def logaddexp(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """logaddexp(a, b) → Max(a, b) + log(1 + exp(-|a - b|)); the difference of equal infinities is 0."""
    a, b = wide(g, a, b)
    return g.Add(g.Max(a, b), log1p_of(g, g.Exp(_minus_distance(g, a, b))))


@translates(aten.logaddexp2.default)
def logaddexp2(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """logaddexp2(a, b) → Max(a, b) + log2(1 + 2^-|a - b|)."""
    a, b = wide(g, a, b)
    smaller = g.Pow(g.const(2, a.dtype), _minus_distance(g, a, b))
    return g.Add(g.Max(a, b), g.Div(log1p_of(g, smaller), math.log(2)))


def _minus_distance(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    return where(g, g.Equal(a, b), 0, g.Neg(g.Abs(g.Sub(a, b))))


def times_log(logarithm: Callable[[Graph, Tensor], Tensor], *targets: OpOverload) -> Callable[[Graph, Operand, Operand], Tensor]:
    """Return the translation of x·log(y), which is 0 if x is 0, unless y is NaN."""

    @translates(*targets)
    def translation(g: Graph, a: Operand, b: Operand) -> Tensor:
        x, y = wide(g, a, b)
        zero = g.And(g.Equal(x, 0), g.Not(g.IsNaN(y)))
        return where(g, zero, 0, g.Mul(x, logarithm(g, y)))

    return translation


xlogy = times_log(
    lambda g, y: g.Log(y), aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other,
    aten.special_xlogy.default, aten.special_xlogy.self_scalar, aten.special_xlogy.other_scalar,
)  # fmt: skip
xlog1py = times_log(log1p_of, aten.special_xlog1py.default, aten.special_xlog1py.self_scalar, aten.special_xlog1py.other_scalar)


@translates(aten.special_ndtr.default)
def ndtr(g: Graph, x: Tensor) -> Tensor:
    """special_ndtr(x) → erfc(-x/√2) / 2."""
    x, *_ = wide(g, x)
    return g.Mul(erfc(g, g.Mul(x, -math.sqrt(0.5))), 0.5)


@translates(aten.special_entr.default)
def entr(g: Graph, x: Tensor) -> Tensor:
    """special_entr(x) → -x·log(x), 0 at 0, -inf below."""
    x, *_ = wide(g, x)
    inside = where(g, g.Equal(x, 0), 0, g.Neg(g.Mul(x, g.Log(x))))
    return where(g, g.Less(x, 0), -math.inf, inside)
