"""Complex values: ONNX Runtime computes with none, so each is a pair of real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from .expressions import Size
from .source_node import CurrentNode
from .tensor import Tensor


@dataclass(frozen=True)
class ComplexPair:
    """A complex value: its real and its imaginary part, of the same sizes and the same floating dtype."""

    real: Tensor
    imag: Tensor

    @property
    def known_sizes(self) -> tuple[Size, ...] | None:
        """The size of each axis; None where nobody said."""
        return self.real.known_sizes

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The size of each axis."""
        return self.real.sizes

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.real.rank

    def map(self, change: Callable[[Tensor], Tensor]) -> ComplexPair:
        """Return both parts, changed in the same way."""
        return ComplexPair(change(self.real), change(self.imag))


def map_real_imag(make: Callable[..., Tensor], *values: Any) -> Any:
    """Return what `make` makes of values: of complex ones, what it makes of their real parts, and of their imaginary ones."""
    if not isinstance(values[0], ComplexPair):
        return make(*values)
    return ComplexPair(make(*(value.real for value in values)), make(*(value.imag for value in values)))


class RealPart(torch.Tensor):
    """What the capture says of the real part of a complex tensor: its sizes, and its dtype; it holds no elements."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    sizes: Any

    @staticmethod
    def of(whole: torch.Tensor) -> RealPart:
        """Describe the real part of a tensor that the capture has."""
        made = torch.empty((0,) * whole.dim(), dtype=whole.dtype.to_real(), device="meta").as_subclass(RealPart)
        made.sizes = whole.shape
        return made

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The sizes, as the capture has them."""
        return self.sizes


def touches_complex(node: torch.fx.Node) -> bool:
    """Return whether a call takes or gives a complex tensor."""
    return any(_has_complex(each.meta.get("val")) for each in (node, *node.all_input_nodes))


def _has_complex(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_complex, value))
    return isinstance(value, torch.Tensor) and value.is_complex()


@contextmanager
def use_real_meta(g: CurrentNode) -> Iterator[None]:
    """While it lasts, the capture says of each complex result of the node being translated what holds for one of its parts."""
    before = g.at.meta["val"]
    g.at.meta["val"] = _real(before)
    try:
        yield
    finally:
        g.at.meta["val"] = before


def _real(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_real, value))
    return RealPart.of(value) if isinstance(value, torch.Tensor) and value.is_complex() else value
