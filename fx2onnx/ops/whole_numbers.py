"""Greatest common divisors and least common multiples."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..compat.operators import aten
from ..ir.dtypes import BOOL, INT32, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..lower.subgraphs import finish_subgraph, input_named
from ..translate.registry import translates
from .pointwise_powers import any_above_zero


@translates(aten.gcd.default, aten.gcd_.default)
def gcd(g: Graph, a: Operand, b: Operand) -> Tensor:
    """gcd(a, b) → Euclid's algorithm in a Loop: (a, b) becomes (b, a mod b) until all b are 0."""
    return _gcd(g, *_alike(g, a, b))


@translates(aten.lcm.default, aten.lcm_.default)
def lcm(g: Graph, a: Operand, b: Operand) -> Tensor:
    """lcm(a, b) → |a / gcd(a, b) · b|, and 0 where both are 0."""
    a, b = _alike(g, a, b)
    product = g.Mul(g.Div(a, _not_zero(g, _gcd(g, a, b))), b)
    return g.Abs(g.cast(g.cast(product, INT32), INT64) if g.dtype == INT32 else product)  # torch multiplies shorter integers in int32


def _alike(g: Graph, a: Operand, b: Operand) -> list[Tensor]:
    return [g.set_sizes(g.Expand(g.cast(x, INT64), list(g.sizes)), g.sizes) for x in g.promote(a, b)]


def _not_zero(g: Graph, x: Tensor) -> Tensor:
    return g.Where(g.Equal(x, 0), g.const(1, INT64), x)


def _gcd(g: Graph, a: Tensor, b: Tensor) -> Tensor:
    """Return the divisor in int64; the smallest number of a dtype has no absolute value in it, and does not change, as in torch."""
    b, a = (g.set_sizes(g.cast(g.cast(g.Abs(x), g.dtype), INT64), x.sizes) for x in (a, b))
    made = g.Loop(None, _goes_on(g, b), a, b, outputs=2, body=_turn(g, a.sizes))[0]
    made.dtype = INT64
    return made


def _turn(g: Graph, sizes: Sequence[Size]) -> ir.Graph:
    inner = g.child()
    number, goes_on = input_named(g, "turn", (), INT64), input_named(g, "goes_on", (), BOOL)
    a, b = inputs = [input_named(g, "state", sizes, INT64) for _ in range(2)]
    done, whole = inner.Equal(b, 0), inner.Div(a, _not_zero(inner, b))
    rest = inner.Where(done, b, inner.Sub(a, inner.Mul(whole, b)))  # ONNX Runtime's Mod(fmod=1) uses float64
    results = [_goes_on(inner, rest), inner.Where(done, a, b), rest]
    return finish_subgraph(inner, "body", [number, goes_on, *inputs], results, [BOOL, INT64, INT64])


def _goes_on(g: Graph, b: Tensor) -> Tensor:
    return any_above_zero(g, g.cast(g.Not(g.Equal(b, 0)), INT64))
