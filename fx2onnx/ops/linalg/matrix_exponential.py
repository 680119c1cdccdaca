"""The routine for the matrix exponential: each matrix is halved until it is small, and the result of a polynomial squared."""

from __future__ import annotations

import math
from functools import reduce

from ...ir.dtypes import INT64
from ...ir.graph import Graph, Tensor
from ...lower.local_functions import append_loop
from .matrices import count_to, size, zeros_of

SMALL = 0.5  # the norm up to which 16 terms have an error of 1e-19
MOST = 1100  # halvings: more than any float64 needs


def matrix_exp(g: Graph, x: Tensor) -> list[Tensor]:
    """Return exp(A) of matrices (b, n, n), by sixteen terms and squaring."""
    b, n = size(g, x, 0), size(g, x, 1)
    sums = g.ReduceSum(g.Abs(x), [1], keepdims=0)  # (b, n)
    norm = g.ReduceMax(g.Concat(sums, zeros_of(g, x.dtype, b, g.const([1], INT64)), axis=1), [1], keepdims=0)  # (b,)
    times = g.Ceil(g.Div(g.Log(g.Max(g.Div(norm, SMALL), 1)), math.log(2)))
    times = g.Where(g.Less(times, MOST), times, g.scalar(0, x.dtype))  # infinities and NaN are not halved
    halves = g.Pow(g.scalar(0.5, x.dtype), times)
    scale = g.Where(g.Less(norm, float("inf")), halves, g.scalar(float("nan"), x.dtype))  # torch gives a matrix of NaN
    power = _polynomial(g, g.Mul(x, g.Unsqueeze(scale, [1, 2])), n)
    halvings = g.cast(times, INT64)
    turns = g.ReduceMax(g.Concat(halvings, g.const([0], INT64), axis=0), [0], keepdims=0)

    def square(t: Graph, turn: Tensor, power: Tensor) -> list[Tensor]:
        return [t.Where(t.Unsqueeze(t.Less(turn, halvings), [1, 2]), t.MatMul(power, power), power)]

    return append_loop(g, turns, [power], square)


def _polynomial(g: Graph, x: Tensor, n: Tensor) -> Tensor:
    """Return the sum of xⁱ/i! up to i = 16, in powers of x⁴."""
    places = count_to(g, n)
    one = g.cast(g.Equal(g.Unsqueeze(places, [1]), places), x.dtype)
    square = g.MatMul(x, x)
    powers = [one, x, square, g.MatMul(square, x)]
    fourth = g.MatMul(square, square)
    parts = [reduce(g.Add, [g.Mul(p, 1 / math.factorial(4 * i + j)) for j, p in enumerate(powers)]) for i in range(4)]
    made = g.Add(parts[3], g.Mul(fourth, 1 / math.factorial(16)))
    for part in parts[2::-1]:
        made = g.Add(part, g.MatMul(fourth, made))
    return made
