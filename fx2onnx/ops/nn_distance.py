"""Distances of vectors: cosine similarity and p-norm distances, also of all pairs. cdist is in reduce_norm.py."""

from __future__ import annotations

from collections.abc import Sequence

from ..compat.operators import aten
from ..ir.dtypes import BOOL, INT64
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .index import broadcast_sizes
from .reduce import axes_of
from .reduce_norm import p_norm


@translates(aten.cosine_similarity.default)
def cosine_similarity(g: Graph, x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """cosine_similarity(x1, x2, dim, eps) → Σ (x1/max(‖x1‖, eps))·(x2/max(‖x2‖, eps)): Mul, ReduceSum, ReduceL2, Max, Div."""
    rank = max(x1.rank, x2.rank)
    a, b = (_unsqueeze_to_rank(g, x, rank) for x in g.promote(x1, x2))
    axes = axes_of(a, dim)
    parts = [g.Div(x, g.Max(p_norm(g, x, 2, axes, True), eps)) for x in (_repeat_axes(g, a, b, axes), _repeat_axes(g, b, a, axes))]
    return g.ReduceSum(g.Mul(*parts), axes or None, keepdims=0)


def _unsqueeze_to_rank(g: Graph, x: Tensor, rank: int) -> Tensor:
    """Return x with this many axes; new ones are in front."""
    more = rank - x.rank
    return g.set_sizes(g.Unsqueeze(x, list(range(more))), (1,) * more + tuple(x.sizes)) if more else x


def _repeat_axes(g: Graph, x: Tensor, other: Tensor, axes: Sequence[int]) -> Tensor:
    """Return x repeated along the axes where the other tensor has more than one element."""
    wanted = [other.sizes[i] if i in axes and size == 1 else size for i, size in enumerate(x.sizes)]
    if wanted == list(x.sizes):
        return x
    return g.set_sizes(g.Expand(x, [size if i in axes else 1 for i, size in enumerate(wanted)]), wanted)


@translates(aten.pairwise_distance.default)
def pairwise_distance(g: Graph, x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """pairwise_distance(x1, x2, p, eps, keepdim) → ‖x1 − x2 + eps‖ over the last axis: Sub, Add and the norm."""
    difference = g.Add(*g.promote(g.Sub(*g.promote(x1, x2)), eps))
    g.set_sizes(difference, broadcast_sizes([x1, x2]))
    return p_norm(g, difference, p, axes_of(difference, -1), keepdim)


@translates(aten.pdist.default, aten._pdist_forward.default)
def pdist(g: Graph, x: Tensor, p: float = 2.0) -> Tensor:
    """pdist(x, p) → the norm of xᵢ − xⱼ for all i < j: Trilu, NonZero, Gather, Sub."""
    square = g.Expand(g.const(True, BOOL), [x.sizes[0]] * 2)
    pairs = g.NonZero(g.Trilu(square, g.const(1, INT64), upper=1))
    first, second = (g.Gather(x, g.Gather(pairs, g.const(i, INT64), axis=0), axis=0) for i in (0, 1))
    difference = g.set_sizes(g.Sub(first, second), (*g.sizes, x.sizes[1]))
    return p_norm(g, difference, p, [1], False)
