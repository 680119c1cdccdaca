"""Gamma, zeta, error, Bessel and Airy functions, computed in float64. Orthogonal polynomials are in special_polynomials.py.

A smooth piece of a function becomes the polynomial through torch's values at the Chebyshev points, computed when it is first needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..compat.operators import OpOverload, aten
from ..errors import Untranslated
from ..ir import float64_math
from ..ir.dtypes import DOUBLE, FLOAT
from ..ir.float64_math import log1p_of
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates
from .pointwise import where

Function = Callable[[torch.Tensor], torch.Tensor]
Floats = NDArray[np.float64]
special = torch.special
SHIFT = 12  # by how much arguments of asymptotic series are increased
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
CENTRE = 0.5 - math.exp(-2)  # up to this distance from 1/2 the normal quantiles are a polynomial
QUARTER = math.pi / 4


def _modulus(j: Function, y: Function, phase: float) -> tuple[Function, Function]:
    """Return P and Q as functions of s = 25/x², where j is P·cos(x - phase) - 5/x·Q·sin(x - phase), times √(2/πx), and y is alike."""

    def p(s: torch.Tensor) -> torch.Tensor:
        x = 5 / s.sqrt()
        return (math.pi * x / 2).sqrt() * (j(x) * (x - phase).cos() + y(x) * (x - phase).sin())

    def q(s: torch.Tensor) -> torch.Tensor:
        x = 5 / s.sqrt()
        return (math.pi * x / 2).sqrt() * (y(x) * (x - phase).cos() - j(x) * (x - phase).sin()) * x / 5

    return p, q


J0, J1, Y0, Y1 = special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_y1
P0, Q0 = _modulus(J0, Y0, QUARTER)
P1, Q1 = _modulus(J1, Y1, 3 * QUARTER)
PIECES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float, float, int]] = {
    "i0 near": (special.i0e, 0, 8, 30),
    "i0 far": (lambda r: special.i0e(8 / r) * (8 / r).sqrt(), 0, 1, 25),
    "i1 near": (lambda x: special.i1e(x) / x, 0, 8, 30),
    "i1 far": (lambda r: special.i1e(8 / r) * (8 / r).sqrt(), 0, 1, 25),
    "k0 near": (lambda s: special.modified_bessel_k0(s.sqrt()) + (s.sqrt() / 2).log() * special.i0(s.sqrt()), 0, 4, 12),
    "k0 far": (lambda r: special.scaled_modified_bessel_k0(2 / r) * (2 / r).sqrt(), 0, 1, 25),
    "k1 near": (lambda s: (special.modified_bessel_k1(s.sqrt()) - (s.sqrt() / 2).log() * special.i1(s.sqrt())) * s.sqrt(), 0, 4, 12),
    "k1 far": (lambda r: special.scaled_modified_bessel_k1(2 / r) * (2 / r).sqrt(), 0, 1, 25),
    "j0 near": (lambda s: J0(s.sqrt()), 0, 25, 20),
    "j1 near": (lambda s: J1(s.sqrt()) / s.sqrt(), 0, 25, 20),
    "y0 near": (lambda s: Y0(s.sqrt()) - s.log() / math.pi * J0(s.sqrt()), 0, 25, 20),
    "y1 near": (lambda s: (Y1(s.sqrt()) - s.log() / math.pi * J1(s.sqrt()) + 2 / math.pi / s.sqrt()) / s.sqrt(), 0, 25, 20),
    "p0": (P0, 0, 1, 20),
    "q0": (Q0, 0, 1, 20),
    "p1": (P1, 0, 1, 20),
    "q1": (Q1, 0, 1, 20),
    "airy near": (special.airy_ai, -2.09, 2.09, 30),
    "airy far": (lambda r: special.airy_ai((1.5 / r) ** (2 / 3)) * (1 / r).exp() * (1.5 / r) ** (1 / 6), 0.01, 0.5, 25),
    "erfcx": (lambda t: special.erfcx(2 / t - 2) / t, 0, 1, 30),
    "quantile near": (lambda s: special.ndtri(s.sqrt() + 0.5) / s.sqrt(), 0, CENTRE**2, 30),
    "quantile far": (lambda z: special.ndtri((-0.5 / z**2).exp()) + 1 / z + z * z.log(), 1 / 38, 0.5, 30),
}
# from Cephes (by Stephen Moshier), highest power first: numerator and denominator of both waves of Airy's function below -2.09
AIRY = (
    (-0.1316963234183318, -0.6264565444319123, -0.6931580360369335, -0.2797799815451191, -0.04919001326095003, -0.004062659235948854,
     -0.0001592764962392621, -2.776491081552329e-06, -1.6778769848911465e-08),
    (13.356042070655324, 32.682503279522464, 26.736704094149957, 9.187074029072596, 1.4752914677166642, 0.11568717379518804,
     0.004402916416152112, 7.547203482874142e-05, 4.5185009297058035e-07),
    (0.01973399320916857, 0.39110302961568827, 1.0657989759959559, 0.9391692298166502, 0.35146565610554764, 0.06338889196289255,
     0.005858041130483885, 0.000282851600836737, 6.98793669997261e-06, 8.117892395543892e-08, 3.415517847659236e-10),
    (9.30892908077442, 19.835292871831214, 15.564662893286462, 5.476860694229755, 0.9542936116189619, 0.08645808263523921,
     0.004126565238242226, 0.00010125908511650914, 1.1716673321441352e-06, 4.9183457006293e-09),
)  # fmt: skip


@cache
def _coefficients(piece: str) -> list[float]:
    """Return the coefficients of powers of t, which is -1 at the lower bound of the argument and 1 at the upper."""
    function, low, high, terms = PIECES[piece]

    def of_t(t: Floats) -> Any:  # numpy's stubs also allow a single number
        return function(torch.from_numpy((t + 1) / 2 * (high - low) + low)).numpy()

    return np.polynomial.chebyshev.cheb2poly(np.polynomial.chebyshev.chebinterpolate(of_t, terms - 1)).tolist()


def _evaluate_piece(g: Graph, x: Tensor, piece: str) -> Tensor:
    """Return the polynomial of a piece: the powers by Pow along a new axis, their sum by MatMul."""
    _, low, high, _ = PIECES[piece]
    coefficients = _coefficients(piece)
    t = g.Sub(g.Mul(g.Sub(x, low), 2 / (high - low)), 1)
    powers = g.Pow(g.Unsqueeze(t, [-1]), g.const(list(range(len(coefficients))), DOUBLE))
    return _sum(g, powers, coefficients)


def _sum(g: Graph, terms: Tensor, weights: list[float]) -> Tensor:
    """Return the weighted sum along the last axis by MatMul, which also supports empty tensors."""
    return g.Squeeze(g.MatMul(terms, g.const([[weight] for weight in weights], DOUBLE)), [-1])


def translate_in_double(formula: Callable[[Graph, Tensor], Tensor], *targets: OpOverload) -> Callable[[Graph, Tensor], Tensor]:
    """Return the translation of a function of one number by a formula in float64."""

    @translates(*targets)
    def translation(g: Graph, x: Tensor) -> Tensor:
        return formula(g, g.cast(x, DOUBLE))

    return translation


def _round_to_result(g: Graph, x: Tensor) -> Tensor:
    """Return the number rounded as in torch's kernel, to float32 unless the result is float64, so that it overflows alike."""
    return x if g.dtype == DOUBLE else g.cast(g.cast(x, FLOAT), DOUBLE)


def _exp(g: Graph, x: Tensor) -> Tensor:
    return _round_to_result(g, g.Exp(x))


def _square(g: Graph, x: Tensor) -> Tensor:
    return g.Mul(x, x)


def _i0e(g: Graph, x: Tensor) -> Tensor:
    x = g.Abs(x)
    return g.Where(g.LessOrEqual(x, 8), _evaluate_piece(g, x, "i0 near"), g.Div(_evaluate_piece(g, g.Div(8, x), "i0 far"), g.Sqrt(x)))


def _i1e(g: Graph, x: Tensor) -> Tensor:
    a = g.Abs(x)
    far = g.Mul(g.Sign(x), g.Div(_evaluate_piece(g, g.Div(8, a), "i1 far"), g.Sqrt(a)))
    return g.Where(g.LessOrEqual(a, 8), g.Mul(x, _evaluate_piece(g, a, "i1 near")), far)


def _i0(g: Graph, x: Tensor) -> Tensor:
    return g.Mul(_exp(g, g.Abs(x)), _i0e(g, x))


def _i1(g: Graph, x: Tensor) -> Tensor:
    return g.Mul(_exp(g, g.Abs(x)), _i1e(g, x))


def _k(g: Graph, x: Tensor, near: Tensor, far: str, scaled: bool) -> Tensor:
    distant = g.Div(_evaluate_piece(g, g.Div(2, x), far), g.Sqrt(x))
    near, distant = (g.Mul(near, _exp(g, x)), distant) if scaled else (near, g.Mul(distant, _exp(g, g.Neg(x))))
    return where(g, g.Equal(x, 0), math.inf, g.Where(g.LessOrEqual(x, 2), near, distant))


def _k0(g: Graph, x: Tensor, scaled: bool = False) -> Tensor:
    near = g.Sub(_evaluate_piece(g, _square(g, x), "k0 near"), g.Mul(g.Log(g.Mul(x, 0.5)), _i0(g, x)))
    return _k(g, x, near, "k0 far", scaled)


def _k1(g: Graph, x: Tensor, scaled: bool = False) -> Tensor:
    near = g.Add(g.Div(_evaluate_piece(g, _square(g, x), "k1 near"), x), g.Mul(g.Log(g.Mul(x, 0.5)), _i1(g, x)))
    return _k(g, x, near, "k1 far", scaled)


def _wave(g: Graph, x: Tensor, order: int, second: bool) -> Tensor:
    """Return J or Y of this order for x above 5."""
    s, angle = g.Div(25, _square(g, x)), _round_to_result(g, g.Sub(x, (2 * order + 1) * QUARTER))
    p, q = _evaluate_piece(g, s, f"p{order}"), g.Mul(g.Div(5, x), _evaluate_piece(g, s, f"q{order}"))
    sine, cosine = g.Sin(angle), g.Cos(angle)
    wave = g.Add(g.Mul(p, sine), g.Mul(q, cosine)) if second else g.Sub(g.Mul(p, cosine), g.Mul(q, sine))
    return g.Mul(wave, g.Sqrt(g.Div(2 / math.pi, x)))


def _j0(g: Graph, x: Tensor) -> Tensor:
    x = g.Abs(x)
    return g.Where(g.LessOrEqual(x, 5), _evaluate_piece(g, _square(g, x), "j0 near"), _wave(g, x, 0, False))


def _j1(g: Graph, x: Tensor) -> Tensor:
    a = g.Abs(x)
    near = g.Mul(x, _evaluate_piece(g, _square(g, x), "j1 near"))
    return g.Where(g.LessOrEqual(a, 5), near, g.Mul(g.Sign(x), _wave(g, a, 1, False)))


def _y0(g: Graph, x: Tensor) -> Tensor:
    near = g.Add(_evaluate_piece(g, _square(g, x), "y0 near"), g.Mul(g.Mul(g.Log(x), _j0(g, x)), 2 / math.pi))
    return g.Where(g.LessOrEqual(x, 5), near, _wave(g, x, 0, True))


def _y1(g: Graph, x: Tensor) -> Tensor:
    inner = g.Sub(g.Mul(g.Log(x), _j1(g, x)), g.Div(1, x))
    near = g.Add(g.Mul(x, _evaluate_piece(g, _square(g, x), "y1 near")), g.Mul(inner, 2 / math.pi))
    return where(g, g.Equal(x, 0), -math.inf, g.Where(g.LessOrEqual(x, 5), near, _wave(g, x, 1, True)))


def _spherical_j0(g: Graph, x: Tensor) -> Tensor:
    return where(g, g.IsInf(x), 0, where(g, g.Equal(x, 0), 1, g.Div(g.Sin(x), x)))


def _erfcx(g: Graph, x: Tensor) -> Tensor:
    t = g.Div(2, g.Add(g.Abs(x), 2))
    positive = g.Mul(t, _evaluate_piece(g, t, "erfcx"))
    return g.Where(g.Less(x, 0), g.Sub(g.Mul(g.Exp(_square(g, x)), 2), positive), positive)


def _log_ndtr(g: Graph, x: Tensor) -> Tensor:
    t = g.Mul(x, math.sqrt(0.5))
    low = g.Sub(g.Log(g.Mul(_erfcx(g, g.Neg(t)), 0.5)), _square(g, t))
    return g.Where(g.Less(x, -1), low, log1p_of(g, g.Mul(float64_math.erfc(g, t), -0.5)))


def _ndtri(g: Graph, y: Tensor) -> Tensor:
    """Return the quantile, with both tails computed from the smaller of y and 1 - y."""
    centre, lower = g.Sub(y, 0.5), g.LessOrEqual(y, 0.5)
    p = g.Where(lower, y, g.Sub(1, y))
    z = g.Reciprocal(g.Sqrt(g.Mul(g.Log(p), -2)))
    tail = g.Sub(g.Sub(_evaluate_piece(g, z, "quantile far"), g.Reciprocal(z)), g.Mul(z, g.Log(z)))
    tail = where(g, g.Equal(p, 0), -math.inf, tail)
    near = g.Mul(centre, _evaluate_piece(g, _square(g, centre), "quantile near"))
    return g.Where(g.Greater(p, 0.5 - CENTRE), near, g.Where(lower, tail, g.Neg(tail)))


def _erfinv(g: Graph, y: Tensor) -> Tensor:
    half = g.Mul(g.Sub(1, g.Abs(y)), 0.5)
    return g.Mul(g.Mul(g.Sign(y), _ndtri(g, half)), -math.sqrt(0.5))


def _series(g: Graph, x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Return Σ c·x^k by Horner's rule."""
    total = g.const(coefficients[-1], DOUBLE)
    for c in reversed(coefficients[:-1]):
        total = g.Add(g.Mul(total, x), c)
    return total


def _ladder(g: Graph, x: Tensor) -> Tensor:
    """Return x, x + 1, …, along a new last axis."""
    return g.Add(g.Unsqueeze(x, [-1]), g.const(list(map(float, range(SHIFT))), DOUBLE))


def log_gamma(g: Graph, x: Tensor) -> Tensor:
    """Return Stirling's series of an increased argument; for negative x, log(π/|sin πx|) less log Γ(1 - x)."""
    below = g.Less(x, 0)
    z = g.Where(below, g.Sub(1, x), x)
    small = g.Less(z, SHIFT)
    w = g.Where(small, g.Add(z, SHIFT), z)
    terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)]
    rest = g.Div(_series(g, g.Div(1, _square(g, w)), terms), w)
    value = g.Add(g.Add(g.Sub(g.Mul(g.Sub(w, 0.5), g.Log(w)), w), rest), math.log(2 * math.pi) / 2)
    value = g.Sub(value, where(g, small, _sum(g, g.Log(_ladder(g, z)), [1.0] * SHIFT), 0))
    sine = g.Sin(g.Mul(g.Sub(x, g.Floor(x)), math.pi))
    value = g.Where(below, g.Sub(g.Sub(math.log(math.pi), g.Log(sine)), value), value)
    value = where(g, g.Or(g.Equal(x, 1), g.Equal(x, 2)), 0, value)  # exact, as in torch
    return where(g, g.IsInf(x), math.inf, value)


def _digamma(g: Graph, x: Tensor) -> Tensor:
    """Return the asymptotic series of an increased argument; for negative x, that of 1 - x less π/tan πx."""
    below = g.Less(x, 0)
    z = g.Where(below, g.Sub(1, x), x)
    small = g.Less(z, SHIFT)
    w = g.Where(small, g.Add(z, SHIFT), z)
    r = g.Div(1, _square(g, w))
    rest = g.Add(g.Div(0.5, w), g.Mul(r, _series(g, r, [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)])))
    moved = where(g, small, _sum(g, g.Reciprocal(_ladder(g, z)), [1.0] * SHIFT), 0)
    value = g.Sub(g.Sub(g.Log(w), rest), moved)
    angle = g.Mul(g.Sub(x, g.Floor(x)), math.pi)
    reflected = g.Sub(value, g.Div(g.Mul(g.Cos(angle), math.pi), g.Sin(angle)))
    reflected = where(g, g.Equal(x, g.Floor(x)), math.nan, reflected)
    return g.Where(g.Equal(x, 0), g.Neg(g.Reciprocal(x)), g.Where(below, reflected, value))


def _zeta_of_positive(g: Graph, s: Tensor, q: Tensor) -> Tensor:
    """Return zeta by the Euler–Maclaurin formula: the first terms, the integral of the others, and its corrections."""
    first = _sum(g, g.Pow(_ladder(g, q), g.Unsqueeze(g.Neg(s), [-1])), [1.0] * SHIFT)
    w = g.Add(q, SHIFT)
    r = g.Div(1, _square(g, w))
    terms = [b / math.factorial(2 * k) for k, b in enumerate(BERNOULLI, 1)]
    total = g.const(terms[-1], DOUBLE)
    for k in range(len(terms) - 1, 0, -1):
        total = g.Add(g.Mul(total, g.Mul(g.Mul(g.Add(s, 2 * k - 1), g.Add(s, 2 * k)), r)), terms[k - 1])
    others = g.Add(g.Add(g.Div(w, g.Sub(s, 1)), 0.5), g.Div(g.Mul(total, s), w))
    return g.Add(first, g.Mul(g.Pow(w, g.Neg(s)), others))


def _zeta(g: Graph, s: Tensor, q: Tensor) -> Tensor:
    """Return zeta, for negative q with integer s as ζ(s, f) ± (ζ(s, 1 - f) - ζ(s, 1 - q)) with its fraction f."""
    whole, below = g.Equal(s, g.Floor(s)), g.Less(q, 0)
    f = g.Where(below, g.Sub(q, g.Floor(q)), q)
    positive = _zeta_of_positive(g, s, f)
    other = g.Sub(_zeta_of_positive(g, s, g.Sub(1, f)), _zeta_of_positive(g, s, g.Sub(1, q)))
    even = g.Equal(g.Mod(s, g.const(2, DOUBLE), fmod=1), 0)
    negative = where(g, whole, g.Add(positive, g.Where(even, other, g.Neg(other))), math.nan)
    value = g.Where(below, negative, positive)
    value = where(g, g.And(g.LessOrEqual(q, 0), g.Equal(q, g.Floor(q))), math.inf, value)
    return where(g, g.Equal(s, 1), math.inf, where(g, g.Less(s, 1), math.nan, value))


@translates(aten.special_zeta.default, aten.special_zeta.self_scalar, aten.special_zeta.other_scalar)
def zeta(g: Graph, s: Operand, q: Operand) -> Tensor:
    """special_zeta(s, q) → the Hurwitz zeta function by the Euler–Maclaurin formula."""
    return _zeta(g, g.cast(s, DOUBLE), g.cast(q, DOUBLE))


def _trigamma(g: Graph, x: Tensor) -> Tensor:
    """Return trigamma, below 1/2 as π²/sin² πx - trigamma(1 - x), where torch rounds πx, so integers do not give infinity."""
    below = g.Less(x, 0.5)
    z = g.Where(below, g.Sub(1, x), x)
    value = where(g, g.IsInf(z), 0, _zeta_of_positive(g, g.const(2, DOUBLE), z))
    sine = g.Sin(g.cast(g.Mul(g.cast(x, DOUBLE if g.dtype == DOUBLE else FLOAT), math.pi), DOUBLE))
    return g.Where(below, g.Sub(g.Div(math.pi**2, _square(g, sine)), value), value)


@translates(aten.polygamma.default, aten.special_polygamma.default)
def polygamma(g: Graph, n: Operand, x: Tensor) -> Tensor:
    """polygamma(n, x) → digamma(x), its derivative, then ±n!·ζ(n + 1, x)."""
    if not isinstance(n, int):
        raise Untranslated("its order must be constant")
    x = g.cast(x, DOUBLE)
    if n < 2:
        return _trigamma(g, x) if n else _digamma(g, x)
    return g.Mul(_zeta(g, g.const(n + 1, DOUBLE), x), (-1.0) ** (n + 1) * math.factorial(n))


def _airy_wave(g: Graph, x: Tensor) -> Tensor:
    """Return Airy's function below -2.09; the angle is rounded as in torch."""
    x = g.cast(x, DOUBLE if g.dtype == DOUBLE else FLOAT)
    zeta = g.Div(g.Mul(g.Mul(x, -2), g.Sqrt(g.Neg(x))), 3)
    angle, z, height = g.cast(g.Add(zeta, QUARTER), DOUBLE), g.Div(1, g.cast(zeta, DOUBLE)), g.Sqrt(g.Sqrt(g.cast(g.Neg(x), DOUBLE)))
    fn, fd, gn, gd = (_series(g, _square(g, z), coefficients[::-1]) for coefficients in AIRY)
    p, q = g.Add(g.Mul(_square(g, z), g.Div(fn, fd)), 1), g.Mul(z, g.Div(gn, gd))
    wave = g.Sub(g.Mul(g.Sin(angle), p), g.Mul(g.Cos(angle), q))
    return g.Div(g.Mul(wave, math.sqrt(1 / math.pi)), height)


def _airy_ai(g: Graph, x: Tensor) -> Tensor:
    zeta = g.Mul(g.Mul(x, g.Sqrt(x)), 2 / 3)
    decay = g.Div(g.Mul(g.Exp(g.Neg(zeta)), _evaluate_piece(g, g.Div(1, zeta), "airy far")), g.Sqrt(g.Sqrt(x)))
    near = g.Where(g.GreaterOrEqual(x, 2.09), decay, _evaluate_piece(g, x, "airy near"))
    return where(g, g.IsInf(x), math.nan, g.Where(g.Less(x, -2.09), _airy_wave(g, x), near))


lgamma = translate_in_double(log_gamma, aten.lgamma.default, aten.special_gammaln.default)
digamma = translate_in_double(_digamma, aten.digamma.default, aten.special_digamma.default, aten.special_psi.default)
i0 = translate_in_double(_i0, aten.i0.default, aten.special_i0.default, aten.special_modified_bessel_i0.default)
i0e = translate_in_double(_i0e, aten.special_i0e.default)
i1 = translate_in_double(_i1, aten.special_i1.default, aten.special_modified_bessel_i1.default)
i1e = translate_in_double(_i1e, aten.special_i1e.default)
k0 = translate_in_double(_k0, aten.special_modified_bessel_k0.default)
k1 = translate_in_double(_k1, aten.special_modified_bessel_k1.default)
scaled_k0 = translate_in_double(lambda g, x: _k0(g, x, scaled=True), aten.special_scaled_modified_bessel_k0.default)
scaled_k1 = translate_in_double(lambda g, x: _k1(g, x, scaled=True), aten.special_scaled_modified_bessel_k1.default)
j0 = translate_in_double(_j0, aten.special_bessel_j0.default)
j1 = translate_in_double(_j1, aten.special_bessel_j1.default)
y0 = translate_in_double(_y0, aten.special_bessel_y0.default)
y1 = translate_in_double(_y1, aten.special_bessel_y1.default)
spherical_j0 = translate_in_double(_spherical_j0, aten.special_spherical_bessel_j0.default)
erfcx = translate_in_double(_erfcx, aten.special_erfcx.default)
log_ndtr = translate_in_double(_log_ndtr, aten.special_log_ndtr.default)
ndtri = translate_in_double(_ndtri, aten.special_ndtri.default)
erfinv = translate_in_double(_erfinv, aten.erfinv.default, aten.special_erfinv.default)
airy_ai = translate_in_double(_airy_ai, aten.special_airy_ai.default)
