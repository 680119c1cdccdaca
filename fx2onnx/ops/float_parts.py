"""The fraction and exponent of floats, and the next float. Computed in float64, without bits."""

from __future__ import annotations

import math
from typing import NamedTuple

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..ir.dtypes import DOUBLE, TORCH
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates


class Parts(NamedTuple):
    """x = fraction · 2^exponent with 1/2 ≤ |fraction| < 1, both in float64; for 0, infinity and NaN the number itself and 0."""

    fraction: Tensor
    exponent: Tensor


def parts_of(g: Graph, x: Tensor) -> Parts:
    """Return the parts of a float64: the exponent by Log, corrected by the resulting fraction."""
    odd = g.Or(g.Or(g.Equal(x, 0), g.IsNaN(x)), g.IsInf(x))
    finite = g.Where(odd, g.const(1, DOUBLE), x)
    guess = g.Add(g.Floor(g.Div(g.Log(g.Abs(finite)), math.log(2))), 1)
    guess = g.Max(g.Min(guess, 1024), -1073)
    fraction = times_power(g, finite, g.Neg(guess))
    above, below = (g.cast(truth, DOUBLE) for truth in (g.GreaterOrEqual(g.Abs(fraction), 1), g.Less(g.Abs(fraction), 0.5)))
    shift = g.Sub(above, below)
    fraction = g.Mul(fraction, g.Sub(g.Add(1, below), g.Mul(above, 0.5)))
    return Parts(g.Where(odd, x, fraction), g.Where(odd, g.const(0, DOUBLE), g.Add(guess, shift)))


def times_power(g: Graph, x: Tensor, exponent: Tensor) -> Tensor:
    """Return x · 2^exponent in float64, in two steps, because 2^1074 is not a float64."""
    half = g.Floor(g.Mul(exponent, 0.5))
    first, second = (g.Pow(g.const(2, DOUBLE), part) for part in (half, g.Sub(exponent, half)))
    return g.Mul(g.Mul(x, first), second)


@translates(aten.frexp.Tensor)
def frexp(g: Graph, x: Tensor) -> list[Tensor]:
    """frexp(x) → Log, Floor, Pow, Mul in float64."""
    return list(parts_of(g, g.cast(x, DOUBLE)))


@translates(aten.nextafter.default, aten.nextafter_.default)
def nextafter(g: Graph, x: Tensor, other: Tensor) -> Tensor:
    """nextafter(x, y) → x plus the distance to the next float, computed from its exponent in float64."""
    dtype = g.common_dtype(x, other)
    x, other = (g.cast(value, DOUBLE) for value in g.promote(x, other))
    up = g.Less(x, other)
    outwards = g.Or(g.Equal(x, 0), g.Equal(up, g.Greater(x, 0)))
    moved = g.Add(x, g.Mul(g.Where(up, g.const(1, DOUBLE), g.const(-1, DOUBLE)), _gap(g, x, outwards, dtype)))
    largest = torch.finfo(TORCH[dtype]).max
    moved = g.Where(g.IsInf(x), g.Mul(g.Sign(x), largest), moved)
    missing = g.Or(g.IsNaN(x), g.IsNaN(other))
    return g.Where(g.Equal(x, other), other, g.Where(missing, g.const(torch.nan, DOUBLE), moved))


def _gap(g: Graph, x: Tensor, outwards: Tensor, dtype: ir.DataType) -> Tensor:
    """Return the distance to the next float of a dtype, away from 0 or towards it, which is halved at a power of two."""
    digits = 1 - round(math.log2(torch.finfo(TORCH[dtype]).eps))
    smallest = round(math.log2(torch.finfo(TORCH[dtype]).tiny)) + 1
    fraction, exponent = parts_of(g, x)
    exponent = g.Where(g.Equal(x, 0), g.const(smallest, DOUBLE), exponent)
    narrower = g.And(g.Not(outwards), g.Equal(g.Abs(fraction), 0.5))
    exponent = g.Max(g.Sub(exponent, g.cast(narrower, DOUBLE)), smallest)
    return times_power(g, g.const(1, DOUBLE), g.Sub(exponent, digits))
