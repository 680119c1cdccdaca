"""Formulas in float64 where ONNX Runtime has only float32 kernels, and log1p and expm1, which ONNX lacks."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch

from .dtypes import DOUBLE
from .graph import Graph, Tensor

FAR = 1e18  # the arctangent of larger numbers is π/2
TERMS = 30  # of the polynomial for erfc, which is then exact to 1e-15


def log1p_of(g: Graph, x: Tensor) -> Tensor:
    """Return log(1 + x) without loss near 0: Log of u = 1 + x, plus the rounding error over u."""
    u = g.Add(x, 1)
    kept, rough = g.Sub(u, 1), g.Log(u)
    return g.Where(g.Equal(kept, x), rough, g.Add(rough, g.Div(g.Sub(x, kept), u)))


def expm1_of(g: Graph, x: Tensor) -> Tensor:
    """Return exp(x) - 1 without loss near 0: Tanh(x/2) · (Exp(x) + 1)."""
    return g.Mul(g.Tanh(g.Mul(x, 0.5)), g.Add(g.Exp(x), 1))


def tan(g: Graph, x: Tensor) -> Tensor:
    """Return Sin / Cos."""
    return g.Div(g.Sin(x), g.Cos(x))


def atan(g: Graph, x: Tensor) -> Tensor:
    """Return Atan in float32, corrected once: y - (sin y - x·cos y) / √(1 + x²)."""
    x = g.Clip(x, -FAR, FAR)
    y = g.cast(g.Atan(g.cast(x, torch.float32)), DOUBLE)
    away = g.Sub(g.Sin(y), g.Mul(x, g.Cos(y)))
    return g.Sub(y, g.Div(away, g.Sqrt(g.Add(g.Mul(x, x), 1))))


def asin(g: Graph, x: Tensor) -> Tensor:
    """Return 2·atan(x / (1 + √(1 - x²)))."""
    root = g.Sqrt(g.Mul(g.Sub(1, x), g.Add(x, 1)))
    return g.Mul(atan(g, g.Div(x, g.Add(root, 1))), 2)


def acos(g: Graph, x: Tensor) -> Tensor:
    """Return 2·atan(√((1 - x) / (1 + x)))."""
    return g.Mul(atan(g, g.Sqrt(g.Div(g.Sub(1, x), g.Add(x, 1)))), 2)


def cosh(g: Graph, x: Tensor) -> Tensor:
    """Return (exp(x) + exp(-x)) / 2."""
    return g.Mul(g.Add(g.Exp(x), g.Exp(g.Neg(x))), 0.5)


def sinh(g: Graph, x: Tensor) -> Tensor:
    """Return tanh(x)·cosh(x)."""
    return g.Mul(g.Tanh(x), cosh(g, x))


def asinh(g: Graph, x: Tensor) -> Tensor:
    """Return ±log1p(a + a / (r + √(r² + 1))) for a = |x| and r = 1/a, where no square overflows."""
    a, r = g.Abs(x), g.Reciprocal(g.Abs(x))
    root = g.Add(r, g.Sqrt(g.Add(g.Mul(r, r), 1)))
    return g.Mul(g.Sign(x), log1p_of(g, g.Add(a, g.Div(a, root))))


def acosh(g: Graph, x: Tensor) -> Tensor:
    """Return log1p(t + √t·√(t + 2)) for t = x - 1."""
    t = g.Sub(x, 1)
    return log1p_of(g, g.Add(t, g.Mul(g.Sqrt(t), g.Sqrt(g.Add(t, 2)))))


def atanh(g: Graph, x: Tensor) -> Tensor:
    """Return log1p(2x / (1 - x)) / 2."""
    return g.Mul(log1p_of(g, g.Div(g.Mul(x, 2), g.Sub(1, x))), 0.5)


def erf(g: Graph, x: Tensor) -> Tensor:
    """Return ±(1 - erfc(|x|))."""
    return g.Mul(g.Sign(x), g.Sub(1, _erfc_of_positive(g, g.Abs(x))))


def erfc(g: Graph, x: Tensor) -> Tensor:
    """Return erfc(|x|), or 2 - erfc(|x|) for negative x."""
    positive = _erfc_of_positive(g, g.Abs(x))
    return g.Where(g.Less(x, 0), g.Sub(2, positive), positive)


def _erfc_of_positive(g: Graph, x: Tensor) -> Tensor:
    """Return t·exp(-x²)·P(2t - 1) for t = 2 / (2 + x), the powers by Pow along a new axis and their sum by MatMul."""
    t = g.Div(2, g.Add(x, 2))
    powers = g.Pow(g.Unsqueeze(g.Sub(g.Mul(t, 2), 1), [-1]), g.const(list(range(TERMS)), DOUBLE))
    polynomial = g.Squeeze(g.MatMul(powers, g.const([[c] for c in _coefficients()], DOUBLE)), [-1])
    return g.Mul(g.Mul(t, g.Exp(g.Neg(g.Mul(x, x)))), polynomial)


@cache
def _coefficients() -> list[float]:
    """Return the coefficients of the polynomial in s = 2t - 1 through erfc(x)·exp(x²)/t at Chebyshev's points, where x = 2/t - 2."""

    def exact(s: Any) -> Any:  # (n,) → (n,), float64
        t = (s + 1) / 2
        return (torch.special.erfcx(torch.from_numpy(2 / t - 2)) / torch.from_numpy(t)).numpy()

    return np.polynomial.chebyshev.cheb2poly(np.polynomial.chebyshev.chebinterpolate(exact, TERMS - 1)).tolist()


def softplus(g: Graph, x: Tensor) -> Tensor:
    """Return Max(x, 0) + log1p(exp(-|x|))."""
    return g.Add(g.Max(x, 0), log1p_of(g, g.Exp(g.Neg(g.Abs(x)))))


def gelu(g: Graph, x: Tensor) -> Tensor:
    """Return x·erfc(-x/√2) / 2."""
    return g.Mul(g.Mul(x, 0.5), erfc(g, g.Mul(x, -math.sqrt(0.5))))
