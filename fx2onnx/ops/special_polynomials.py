"""Orthogonal polynomials, whose degree may differ by element: a Loop over a recurrence."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

from ..compat.operators import aten
from ..ir.dtypes import DOUBLE, FLOAT, INT64
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..lower.subgraphs import input_named, make_subgraph_input
from ..translate.registry import translates
from .pointwise import wide

HIGHEST = {FLOAT: 128, DOUBLE: 512}  # the highest degree of Hermite polynomials: torch returns NaN above it
First = Callable[[Graph, Tensor], Tensor]
Next = Callable[[Graph, Tensor, Tensor, Tensor, Tensor], Tensor]


def _twice(g: Graph, x: Tensor) -> Tensor:
    return g.Add(x, x)


def _chebyshev(g: Graph, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
    return g.Sub(g.Mul(_twice(g, x), now), before)


def _hermite(g: Graph, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
    return g.Sub(g.Mul(_twice(g, x), now), g.Mul(_twice(g, k), before))


def _probabilists(g: Graph, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
    return g.Sub(g.Mul(x, now), g.Mul(k, before))


def _laguerre(g: Graph, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
    grown = g.Mul(g.Add(_twice(g, k), g.Sub(1, x)), now)
    return g.Div(g.Sub(grown, g.Mul(k, before)), g.Add(k, 1))


def _legendre(g: Graph, x: Tensor, k: Tensor, now: Tensor, before: Tensor) -> Tensor:
    grown = g.Mul(g.Mul(g.Add(_twice(g, k), 1), x), now)
    return g.Div(g.Sub(grown, g.Mul(k, before)), g.Add(k, 1))


def _same(g: Graph, x: Tensor) -> Tensor:
    return x


def _less_1(g: Graph, x: Tensor) -> Tensor:
    return g.Sub(_twice(g, x), 1)


def _plus_1(g: Graph, x: Tensor) -> Tensor:
    return g.Add(_twice(g, x), 1)


def _one_minus(g: Graph, x: Tensor) -> Tensor:
    return g.Sub(1, x)


def polynomial(name: str, first: First, following: Next) -> Callable[[Graph, Operand, Operand], Tensor]:
    """Return the translation `f(x, n)` → Loop up to the highest degree; each element keeps the value of its degree, 0 if negative."""
    packet = getattr(aten, f"special_{name}")

    @translates(packet.default, packet.x_scalar, packet.n_scalar)
    def translation(g: Graph, x: Operand, n: Operand) -> Tensor:
        x, n = wide(g, x, n)
        one, zero, sizes = g.const(1, x.dtype), g.const(0, x.dtype), g.sizes
        x = g.Expand(_less_1(g, x) if name.startswith("shifted") else x, list(sizes))
        n = g.cast(g.Expand(n, list(sizes)), INT64)
        if "hermite" in name:
            high = g.Greater(n, HIGHEST[x.dtype])
            n, zero = g.Where(high, g.const(-1, INT64), n), g.Where(high, g.const(math.nan, x.dtype), zero)
        turns = g.Add(g.ReduceMax(g.Concat(g.const([-1], INT64), g.Reshape(n, [-1]), axis=0), keepdims=0), 1)
        states = [g.set_sizes(value, sizes) for value in (g.Expand(one, list(sizes)), first(g, x), g.Expand(zero, list(sizes)))]
        made = g.Loop(turns, None, *states, outputs=3, body=_turn(g, x, n, states, following))
        for value in made:
            value.dtype = x.dtype
        return made[2]

    return translation


chebyshev_t = polynomial("chebyshev_polynomial_t", _same, _chebyshev)
chebyshev_u = polynomial("chebyshev_polynomial_u", _twice, _chebyshev)
chebyshev_v = polynomial("chebyshev_polynomial_v", _less_1, _chebyshev)
chebyshev_w = polynomial("chebyshev_polynomial_w", _plus_1, _chebyshev)
shifted_chebyshev_t = polynomial("shifted_chebyshev_polynomial_t", _same, _chebyshev)
shifted_chebyshev_u = polynomial("shifted_chebyshev_polynomial_u", _twice, _chebyshev)
shifted_chebyshev_v = polynomial("shifted_chebyshev_polynomial_v", _less_1, _chebyshev)
shifted_chebyshev_w = polynomial("shifted_chebyshev_polynomial_w", _plus_1, _chebyshev)
hermite_h = polynomial("hermite_polynomial_h", _twice, _hermite)
hermite_he = polynomial("hermite_polynomial_he", _same, _probabilists)
laguerre_l = polynomial("laguerre_polynomial_l", _one_minus, _laguerre)
legendre_p = polynomial("legendre_polynomial_p", _same, _legendre)


def _turn(g: Graph, x: Tensor, n: Tensor, states: list[Tensor], following: Next) -> ir.Graph:
    inner = g.child()
    k, goes_on = make_subgraph_input(g, "k", 0), make_subgraph_input(g, "goes_on", True)
    before, now, kept = (input_named(g, "state", state.sizes, state.dtype) for state in states)
    after = following(inner, x, inner.cast(inner.Add(k, 1), x.dtype), now, before)
    kept_now = inner.Where(inner.Equal(n, k), before, kept)
    outputs = [inner.Identity(goes_on), inner.Identity(now), after, kept_now]
    return ir.Graph([k, goes_on, before, now, kept], outputs, nodes=inner.nodes, name=g.shared.names.unique(f"{g.at.name}/body"))
