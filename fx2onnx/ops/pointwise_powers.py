"""Elementwise powers. Integer powers are products, which wrap as in torch: ONNX Runtime's Pow computes in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from ..compat.operators import aten
from ..ir.dtypes import BOOL, DOUBLE, FLOAT, FLOATS, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..lower.subgraphs import finish_subgraph, input_named
from ..translate.registry import translates
from .pointwise import is_number, reals, where
from .pointwise_logic import left_shift


@translates(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar, aten.pow_.Tensor)
def pow_(g: Graph, a: Operand, b: Operand) -> Tensor:
    """pow(a, b) → Pow, Sqrt or Reciprocal; for integers Mul if b is constant, BitShift if a is 2, else a Loop of squares."""
    base, exponent = g.promote(a, b)
    if is_number(b):
        return _to_the(g, base, b)
    if base.dtype in FLOATS:
        return g.Pow(base, exponent)
    return left_shift(g, 1, exponent) if a == 2 else _power_of_integers(g, base, exponent)


def _to_the(g: Graph, base: Tensor, exponent: float) -> Tensor:
    if exponent == 1:
        return base
    if base.dtype not in FLOATS:
        return _power_by_squaring(g, base, int(exponent)) if exponent > 1 else g.Pow(base, exponent)
    known: dict[float, Callable[[], Tensor]] = {
        -1: lambda: g.Reciprocal(base),
        0.5: lambda: g.Sqrt(base),
        -0.5: lambda: g.Reciprocal(g.Sqrt(base)),
    }
    return known[exponent]() if exponent in known else g.Pow(base, exponent)


def _power_by_squaring(g: Graph, base: Tensor, exponent: int) -> Tensor:
    """Return an integer power as products, which wrap as in torch."""
    if exponent == 1:
        return base
    half = _power_by_squaring(g, base, exponent // 2)
    square = g.Mul(half, half)
    return g.Mul(square, base) if exponent % 2 else square


def _power_of_integers(g: Graph, base: Tensor, exponent: Tensor) -> Tensor:
    """Return a power by the bits of the exponent. For a negative exponent, the power of numbers except 1 and -1 is 0."""
    dtype, sizes = base.dtype, g.sizes
    base, exponent = (g.set_sizes(g.Expand(g.cast(x, INT64), list(sizes)), sizes) for x in (base, exponent))
    negative = g.Less(exponent, 0)
    vanishes = g.And(negative, g.Not(g.Equal(g.Abs(base), 1)))
    states = [g.set_sizes(g.Expand(g.const(1, INT64), list(sizes)), sizes), base, where(g, negative, g.Mod(exponent, 2), exponent)]
    made = g.Loop(None, any_above_zero(g, states[2]), *states, outputs=3, body=_turn(g, sizes))[0]
    made.dtype = INT64
    return g.cast(where(g, vanishes, 0, made), dtype)


def _turn(g: Graph, sizes: Sequence[Size]) -> ir.Graph:
    inner = g.child()
    number, goes_on = input_named(g, "turn", (), INT64), input_named(g, "goes_on", (), BOOL)
    result, square, rest = inputs = [input_named(g, "state", sizes, INT64) for _ in range(3)]
    result = inner.Where(inner.Equal(inner.Mod(rest, 2), 1), inner.Mul(result, square), result)
    rest = inner.Div(rest, 2)
    results = [any_above_zero(inner, rest), result, inner.Mul(square, square), rest]
    return finish_subgraph(inner, "body", [number, goes_on, *inputs], results, [BOOL, INT64, INT64, INT64])


def any_above_zero(g: Graph, x: Tensor) -> Tensor:
    """Return whether there is a number above 0; False for an empty tensor."""
    positive = g.cast(g.Greater(g.Reshape(x, [-1]), 0), FLOAT)
    return g.cast(g.ReduceMax(g.Concat(g.const([0], FLOAT), positive, axis=0), keepdims=0), BOOL)


@translates(
    aten.float_power.Tensor_Tensor, aten.float_power.Tensor_Scalar, aten.float_power.Scalar, aten.float_power_.Tensor,
    aten.float_power_.Scalar,
)  # fmt: skip
def float_power(g: Graph, a: Operand, b: Operand) -> Tensor:
    """float_power(a, b) → Pow in float64."""
    return g.Pow(g.cast(a, DOUBLE), g.cast(b, DOUBLE))


@translates(aten.ldexp.Tensor, aten.ldexp_.default)
def ldexp(g: Graph, x: Tensor, exponent: Tensor) -> Tensor:
    """ldexp(x, n) = x·2ⁿ → Pow, Mul."""
    power, *_ = reals(g, exponent)
    return g.Mul(*reals(g, x, g.set_sizes(g.Pow(g.const(2.0, power.dtype), power), exponent.sizes)))
