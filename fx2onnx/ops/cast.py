"""Operators that only change the dtype, or nothing, and operators that fill a tensor with one value."""

from __future__ import annotations

from ..compat.operators import aten
from ..ir.graph import Graph, Tensor
from ..ir.tensor import Operand
from ..translate.registry import translates


@translates(
    aten.to.dtype, aten.to.device, aten.to.dtype_layout, aten.to.other, aten.type_as.default, aten._to_copy.default,
    aten._autocast_to_reduced_precision.default, aten._autocast_to_full_precision.default,
)  # fmt: skip
def to(g: Graph, x: Tensor, *_: object, **__: object) -> Tensor:
    """to(x, dtype), type_as(x, other), _to_copy(x, dtype?) → Cast to the captured dtype; nothing if it is the same."""
    return g.cast(x, g.dtype)


@translates(
    aten.clone.default, aten.contiguous.default, aten.alias.default, aten.detach.default, aten.detach_.default, aten.lift.default,
    aten.lift_fresh.default, aten.lift_fresh_copy.default, aten.positive.default, aten.requires_grad_.default,
    aten._conj.default, aten.conj.default, aten.conj_physical.default, aten.resolve_conj.default,
    aten.resolve_neg.default, aten.real.default,
)  # fmt: skip
def identity(g: Graph, x: Tensor, *_: object, **__: object) -> Tensor:
    """clone(x), contiguous(x), detach(x), conj(x) of real numbers, … → x itself."""
    return x


@translates(aten.copy.default)
def copy(g: Graph, x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """copy(x, source) → the source in the dtype and the sizes of x: Cast, Expand."""
    source = g.cast(source, x.dtype)
    return source if source.known_sizes == x.sizes else g.Expand(source, list(x.sizes))


@translates(aten.fill.Scalar, aten.fill.Tensor)
def fill(g: Graph, x: Tensor, value: Operand) -> Tensor:
    """fill(x, value) → Expand of the value to the sizes of x."""
    made = g.scalar(value, x.dtype)
    return g.Expand(made, list(x.sizes)) if x.sizes else made


@translates(aten.zero.default)
def zero(g: Graph, x: Tensor) -> Tensor:
    """zero(x) → Expand of 0 to the sizes of x."""
    return fill(g, x, 0)
