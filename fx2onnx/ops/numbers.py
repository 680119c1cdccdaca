"""Operators that return a number from a tensor. Expressions of such numbers are in ir/symbols.py."""

from __future__ import annotations

from ..compat.operators import aten
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates


@translates(aten.item.default, aten._local_scalar_dense.default)
def item(g: Graph, x: Tensor) -> Tensor:
    """item(x) → x without axes, which is then the value of the captured symbol."""
    return g.scalar(x, x.dtype)
