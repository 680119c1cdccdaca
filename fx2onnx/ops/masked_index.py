"""Masked indices, as torch's decompositions use them."""

from __future__ import annotations

from collections.abc import Sequence

from ..compat.operators import aten
from ..ir.dtypes import BOOL, INT64
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates
from .create import make_full
from .index import index
from .pointwise import where
from .scatter import index_put


@translates(aten._unsafe_masked_index.default)
def unsafe_masked_index(g: Graph, x: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Operand) -> Tensor:
    """_unsafe_masked_index(x, mask, indices, fill) → Min and Max of the positions, index, Where."""
    if 0 in x.sizes:
        return make_full(g, g.sizes, fill, x.dtype)
    return where(g, g.cast(mask, BOOL), index(g, x, _inside(g, x, indices)), fill)


@translates(aten._unsafe_masked_index_put_accumulate.default)
def unsafe_masked_index_put(g: Graph, x: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> Tensor:
    """_unsafe_masked_index_put_accumulate(x, mask, indices, values) → Min and Max of the positions, Where, index_put with accumulate."""
    if 0 in x.sizes:
        return x
    kept = where(g, g.cast(mask, BOOL), values, 0)
    return index_put(g, x, _inside(g, x, indices), g.set_sizes(kept, values.sizes), accumulate=True)


def _inside(g: Graph, x: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return the positions, clamped to the sizes of the axes."""
    return [None if at is None else _cut(g, at, g.scalar(x.sizes[axis], INT64)) for axis, at in enumerate(indices)]


def _cut(g: Graph, at: Tensor, size: Tensor) -> Tensor:
    return g.set_sizes(g.Min(g.Max(g.cast(at, INT64), g.Neg(size)), g.Sub(size, 1)), at.sizes)
