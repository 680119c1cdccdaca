"""Functions of a complex number: powers, roots, exponentials, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import Any

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.complex_pairs import ComplexPair
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates_complex
from .complex_arithmetic import angle_of, inverse, length, times

MOST_FACTORS = 8  # an integer power up to this one is computed by products


def exponential(g: Graph, z: ComplexPair) -> ComplexPair:
    """Return eᶻ."""
    grown = g.Exp(z.real)
    return ComplexPair(g.Mul(grown, g.Cos(z.imag)), g.Mul(grown, g.Sin(z.imag)))


def logarithm(g: Graph, z: ComplexPair) -> ComplexPair:
    """Return log |z| and the angle."""
    return ComplexPair(g.Log(length(g, z)), angle_of(g, z))


@translates_complex(aten.polar.default)
def polar(g: Graph, size: Tensor, angle: Tensor) -> ComplexPair:
    """polar(abs, angle) → abs · Cos(angle), abs · Sin(angle)."""
    return ComplexPair(g.Mul(size, g.Cos(angle)), g.Mul(size, g.Sin(angle)))


@translates_complex(aten.sgn.default)
def sgn(g: Graph, z: ComplexPair) -> ComplexPair:
    """sgn(z) → z / |z|; 0 for 0."""
    size = length(g, z)
    divisor = g.Where(g.Equal(size, 0.0), g.scalar(1.0, size.dtype), size)
    return z.map(lambda part: g.Div(part, divisor))


@translates_complex(aten.exp.default)
def exp(g: Graph, z: ComplexPair) -> ComplexPair:
    """exp(z) → Exp(re) · (Cos(im), Sin(im))."""
    return exponential(g, z)


@translates_complex(aten.log.default)
def log(g: Graph, z: ComplexPair) -> ComplexPair:
    """log(z) → Log(|z|) and the angle."""
    return logarithm(g, z)


@translates_complex(aten.square.default)
def square(g: Graph, z: ComplexPair) -> ComplexPair:
    """square(z) → z · z."""
    return times(g, z, z)


@translates_complex(aten.sqrt.default)
def sqrt(g: Graph, z: ComplexPair) -> ComplexPair:
    """sqrt(z) → √((|z| + |re|)/2) for the larger part, im over twice that for the other part; the real part is not negative."""
    large = g.Sqrt(g.Mul(g.Add(length(g, z), g.Abs(z.real)), 0.5))
    small = g.Where(g.Equal(large, 0.0), large, g.Div(g.Mul(g.Abs(z.imag), 0.5), large))
    right = g.GreaterOrEqual(z.real, 0.0)
    imag = g.Where(right, small, large)
    return ComplexPair(g.Where(right, large, small), g.Where(g.Less(z.imag, 0.0), g.Neg(imag), imag))


@translates_complex(aten.rsqrt.default)
def rsqrt(g: Graph, z: ComplexPair) -> ComplexPair:
    """rsqrt(z) → the reciprocal of sqrt(z)."""
    return inverse(g, sqrt(g, z))


@translates_complex(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def pow_(g: Graph, base: Any, exponent: Any) -> ComplexPair:
    """pow(z, n) → products for a small integer n; Exp(n · log(z)) for other positive n, and 0 for z = 0."""
    if isinstance(exponent, (int, float)) and exponent == int(exponent) and 0 < abs(exponent) <= MOST_FACTORS:
        made = base
        for _ in range(abs(int(exponent)) - 1):
            made = times(g, made, base)
        return made if exponent > 0 else inverse(g, made)
    if exponent == 0.5:
        return sqrt(g, base)
    if not isinstance(base, ComplexPair) or not isinstance(exponent, (int, float)) or exponent <= 0:
        raise Untranslated("the exponent of complex numbers must be a constant positive number: write torch.exp(w * torch.log(z))")
    made = exponential(g, logarithm(g, base).map(lambda part: g.Mul(part, float(exponent))))
    nothing = g.Equal(length(g, base), 0.0)
    return made.map(lambda part: g.Where(nothing, g.scalar(0.0, part.dtype), part))


def _sinh_times(g: Graph, x: Tensor, factor: Tensor) -> Tensor:
    """Return factor · sinh(x), which overflows only where the product does."""
    half = g.Mul(x, 0.5)
    return g.Mul(g.Mul(g.Mul(factor, 2.0), g.Sinh(half)), g.Cosh(half))


def _cosh_times(g: Graph, x: Tensor, factor: Tensor) -> Tensor:
    """Return factor · cosh(x), which overflows only where the product does."""
    half = g.Sinh(g.Mul(x, 0.5))
    return g.Add(g.Mul(g.Mul(g.Mul(factor, 2.0), half), half), factor)


@translates_complex(aten.sin.default)
def sin(g: Graph, z: ComplexPair) -> ComplexPair:
    """sin(z) → Sin(re) · Cosh(im), Cos(re) · Sinh(im)."""
    return ComplexPair(_cosh_times(g, z.imag, g.Sin(z.real)), _sinh_times(g, z.imag, g.Cos(z.real)))


@translates_complex(aten.cos.default)
def cos(g: Graph, z: ComplexPair) -> ComplexPair:
    """cos(z) → Cos(re) · Cosh(im), -Sin(re) · Sinh(im)."""
    return ComplexPair(_cosh_times(g, z.imag, g.Cos(z.real)), g.Neg(_sinh_times(g, z.imag, g.Sin(z.real))))


@translates_complex(aten.sinh.default)
def sinh(g: Graph, z: ComplexPair) -> ComplexPair:
    """sinh(z) → Sinh(re) · Cos(im), Cosh(re) · Sin(im)."""
    return ComplexPair(_sinh_times(g, z.real, g.Cos(z.imag)), _cosh_times(g, z.real, g.Sin(z.imag)))


@translates_complex(aten.cosh.default)
def cosh(g: Graph, z: ComplexPair) -> ComplexPair:
    """cosh(z) → Cosh(re) · Cos(im), Sinh(re) · Sin(im)."""
    return ComplexPair(_cosh_times(g, z.real, g.Cos(z.imag)), _sinh_times(g, z.real, g.Sin(z.imag)))


@translates_complex(aten.log2.default, aten.log10.default)
def log_to_a_base(g: Graph, z: ComplexPair) -> ComplexPair:
    """log2(z), log10(z) → log(z) divided by the logarithm of the base."""
    base = math.log(2 if g.overload is aten.log2.default else 10)
    return logarithm(g, z).map(lambda part: g.Div(part, base))
