"""The incomplete gamma functions in float64, by a power series or a continued fraction in a Loop, depending on which converges."""

from __future__ import annotations

import torch

from ..compat.operators import aten
from ..ir.dtypes import BOOL, DOUBLE
from ..ir.graph import Graph, Tensor
from ..lower.local_functions import append_while_loop
from ..translate.registry import translates
from .pointwise import where
from .special import log_gamma

ENOUGH = 1e-16  # of the sum: smaller terms are ignored
TURNS = 10_000  # the number of terms grows with √a; these are enough for a up to 10⁶
TINY = 1e-300  # replaces 0 in a denominator


@translates(aten.igamma.default, aten.special_gammainc.default, aten.igamma_.default)
def igamma(g: Graph, a: Tensor, x: Tensor) -> Tensor:
    """igamma(a, x) = γ(a, x) / Γ(a) → a Loop for the series if x < a + 1, else 1 − a Loop for the continued fraction."""
    return _parts(g, a, x)[0]


@translates(aten.igammac.default, aten.special_gammaincc.default, aten.igammac_.default)
def igammac(g: Graph, a: Tensor, x: Tensor) -> Tensor:
    """igammac(a, x) = Γ(a, x) / Γ(a) → 1 − a Loop for the series if x < a + 1, else a Loop for the continued fraction."""
    return _parts(g, a, x)[1]


def _parts(g: Graph, a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and the upper function, whose sum is 1."""
    a, x = (g.Expand(g.cast(value, DOUBLE), list(g.sizes)) for value in (a, x))
    regular = g.And(g.And(g.Greater(a, 0), g.Greater(x, 0)), g.Not(g.Or(g.IsInf(a), g.IsInf(x))))
    near = g.Less(x, g.Add(a, 1))
    a_near, x_near = (g.Where(g.And(regular, near), value, g.const(1, DOUBLE)) for value in (a, x))
    a_far, x_far = (g.Where(g.And(regular, g.Not(near)), v, g.const(other, DOUBLE)) for v, other in ((a, 1), (x, 3)))
    lower = g.Mul(_factor(g, a_near, x_near), _series(g, a_near, x_near))
    upper = g.Mul(_factor(g, a_far, x_far), _fraction(g, a_far, x_far))
    by_series, by_fraction = (lower, g.Sub(1, lower)), (g.Sub(1, upper), upper)
    values = (g.Where(near, one, other) for one, other in zip(by_series, by_fraction, strict=True))
    made = [_handle_ends(g, a, x, value, beyond) for value, beyond in zip(values, (1, 0), strict=True)]
    return made[0], made[1]


def _handle_ends(g: Graph, a: Tensor, x: Tensor, value: Tensor, beyond: int) -> Tensor:
    """Return a function with its values at the ends of its domain, where `beyond` is that for infinite x, and NaN outside."""
    value = where(g, g.IsNaN(g.Add(a, x)), torch.nan, value)
    value = where(g, g.IsInf(x), beyond, value)
    value = where(g, g.IsInf(a), where(g, g.IsInf(x), torch.nan, g.const(1 - beyond, DOUBLE)), value)
    value = where(g, g.Equal(x, 0), 1 - beyond, value)
    value = where(g, g.Equal(a, 0), where(g, g.Greater(x, 0), beyond, g.const(torch.nan, DOUBLE)), value)
    return where(g, g.Or(g.Less(a, 0), g.Less(x, 0)), torch.nan, value)


def _factor(g: Graph, a: Tensor, x: Tensor) -> Tensor:
    """Return x^a · e^-x / Γ(a)."""
    return g.Exp(g.Sub(g.Sub(g.Mul(a, g.Log(x)), x), log_gamma(g, a)))


def _series(g: Graph, a: Tensor, x: Tensor) -> Tensor:
    """Return 1/a + x/(a(a + 1)) + x²/(a(a + 1)(a + 2)) + …"""

    def step(t: Graph, turn: Tensor, term: Tensor, total: Tensor) -> list[Tensor]:
        below = t.Add(a, t.Add(t.cast(turn, DOUBLE), 1))
        term = t.Mul(term, t.Div(x, below))
        total = t.Add(total, term)
        return [_any(t, t.Greater(term, t.Mul(total, ENOUGH))), term, total]

    first = g.Reciprocal(a)
    return append_while_loop(g, g.const(TURNS, torch.int64), [first, first], step)[1]


def _fraction(g: Graph, a: Tensor, x: Tensor) -> Tensor:
    """Return 1/(x + 1 - a - 1(1 - a)/(x + 3 - a - 2(2 - a)/(x + 5 - a - …))) by Lentz's method."""

    def step(t: Graph, turn: Tensor, c: Tensor, d: Tensor, value: Tensor) -> list[Tensor]:
        i = t.Add(t.cast(turn, DOUBLE), 1)
        numerator = t.Mul(i, t.Sub(a, i))
        b = t.Add(t.Sub(x, a), t.Add(t.Mul(i, 2), 1))
        d = t.Reciprocal(_not_zero(t, t.Add(t.Mul(numerator, d), b)))
        c = _not_zero(t, t.Add(b, t.Div(numerator, c)))
        change = t.Mul(c, d)
        return [_any(t, t.Greater(t.Abs(t.Sub(change, 1)), ENOUGH * 4)), c, d, t.Mul(value, change)]

    first = g.Reciprocal(_not_zero(g, g.Add(g.Sub(x, a), 1)))
    start = g.Expand(g.const(1 / TINY, DOUBLE), g.Shape(x))
    return append_while_loop(g, g.const(TURNS, torch.int64), [start, first, first], step)[2]


def _not_zero(g: Graph, x: Tensor) -> Tensor:
    return g.Where(g.Less(g.Abs(x), TINY), g.const(TINY, DOUBLE), x)


def _any(g: Graph, truth: Tensor) -> Tensor:
    found = g.ReduceSum(g.Reshape(g.cast(truth, torch.int64), [-1]), [0], keepdims=0)  # 0 for an empty tensor
    return g.cast(found, BOOL)
