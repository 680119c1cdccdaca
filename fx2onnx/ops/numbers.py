"""Operators that make a number of a tensor. Not here: computing with such numbers (build/symbols.py)."""

from __future__ import annotations

from ..compat import aten
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates


@translates(aten.item.default, aten._local_scalar_dense.default)
def item(g: Graph, x: Tensor) -> Tensor:
    """item(x) → x without axes: from then on the symbol that the capture gave it."""
    return g.scalar(x, x.dtype)
