"""Softmax and its logarithm."""

from __future__ import annotations

import torch

from ..compat.operators import aten
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .reduce import append_reduce, axes_of


def over(g: Graph, op_type: str, x: Tensor, dim: int) -> Tensor:
    """Append Softmax or LogSoftmax over an axis; a tensor without axes gets one axis of one element for it."""
    if x.rank:
        return g.op(op_type, x, axis=dim)
    return g.Squeeze(g.op(op_type, g.Unsqueeze(x, [0]), axis=0), [0])


@translates(aten.softmax.int, aten._softmax.default, aten.special_softmax.default)
def softmax(g: Graph, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """softmax(x, dim, dtype?) → Softmax, in the dtype of the result."""
    return over(g, "Softmax", g.cast(x, g.dtype), dim)


@translates(aten.log_softmax.int, aten._log_softmax.default, aten.special_log_softmax.default)
def log_softmax(g: Graph, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """log_softmax(x, dim, dtype?) → LogSoftmax, in the dtype of the result."""
    return over(g, "LogSoftmax", g.cast(x, g.dtype), dim)


@translates(aten._safe_softmax.default)
def safe_softmax(g: Graph, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """_safe_softmax(x, dim, dtype?) → Softmax, and 0 where the whole axis is −inf: ReduceMax, Equal, Where."""
    x = g.cast(x, g.dtype)
    nothing = g.Equal(append_reduce(g, "ReduceMax", x, axes_of(x, dim), True), -torch.inf)
    return g.Where(nothing, g.scalar(0, x.dtype), over(g, "Softmax", x, dim))
