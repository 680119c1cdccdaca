"""Sigmoid: ONNX Runtime's, or an exact one if a reader depends on small values."""

from __future__ import annotations

import torch

from ..ir.dtypes import FLOAT, FLOATS
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates

aten = torch.ops.aten
SMALL = 1e-6  # ONNX Runtime's error is less than a tenth of this, and its result is exactly 0 below -18
READ_SMALL = {  # operators whose results depend on small values
    aten.log, aten.log2, aten.log10, aten.reciprocal, aten.rsqrt, aten.sqrt, aten.pow, aten.sign, aten.logit, aten.binary_cross_entropy,
}  # fmt: skip
COMPARE = {aten.gt, aten.lt, aten.ge, aten.le, aten.eq, aten.ne}
HAND_ON = {  # operators that return small values for small values
    aten.add, aten.clamp, aten.clamp_min, aten.maximum, aten.view, aten.reshape, aten._unsafe_view, aten.flatten, aten.squeeze,
    aten.unsqueeze, aten.slice, aten.select, aten.transpose, aten.permute, aten.t, aten.expand, aten.index, aten.gather, aten.cat,
    aten.contiguous, aten.clone, aten.alias, aten.neg, aten.amin, aten.amax,
}  # fmt: skip
STEPS = 4  # how many readers in a row are followed


@translates(aten.sigmoid.default, aten.special_expit.default)
def sigmoid(g: Graph, x: Tensor) -> Tensor:
    """sigmoid(x) → Sigmoid; 1 / (1 + Exp(-x)) for integers, or if a logarithm, division, power or test of small numbers reads it."""
    whole, x = x.dtype not in FLOATS, g.cast(x, g.dtype)
    if x.dtype == FLOAT and (whole or _small_values_matter(g.at, STEPS)):
        return g.Reciprocal(g.Add(g.Exp(g.Neg(x)), 1))
    return g.Sigmoid(x)


def _small_values_matter(node: torch.fx.Node, steps: int) -> bool:
    return any(_reads_small_values(user, node) or (steps and _hands_on(user, steps)) for user in node.users)


def _reads_small_values(user: torch.fx.Node, node: torch.fx.Node) -> bool:
    packet = getattr(user.target, "overloadpacket", None)
    if packet is aten.div:
        return len(user.args) > 1 and user.args[1] is node
    if packet in COMPARE:
        other = next((arg for arg in user.args if arg is not node), None)
        return not isinstance(other, (int, float)) or abs(other) < SMALL
    return packet in READ_SMALL


def _hands_on(user: torch.fx.Node, steps: int) -> bool:
    return getattr(user.target, "overloadpacket", None) in HAND_ON and _small_values_matter(user, steps - 1)
