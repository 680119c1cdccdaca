"""Complex values as pairs of real values, because ONNX Runtime does not compute with complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ..compat.dispatch import disabled_torch_function_impl
from .expressions import Size
from .source_node import CurrentNode
from .tensor import Tensor


@dataclass(frozen=True)
class ComplexPair:
    """A complex value: a real and an imaginary part with the same sizes and floating dtype."""

    real: Tensor
    imag: Tensor

    @property
    def known_sizes(self) -> tuple[Size, ...] | None:
        """The size of each axis; None if unknown."""
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
    """Return `make(*values)`; for complex values, the pair of its results for the real and the imaginary parts."""
    if not isinstance(values[0], ComplexPair):
        return make(*values)
    return ComplexPair(make(*(value.real for value in values)), make(*(value.imag for value in values)))


class RealPart(torch.Tensor):
    """The metadata of the real part of a complex tensor: its sizes and dtype; it has no elements."""

    __torch_function__ = disabled_torch_function_impl  # type: ignore[assignment]
    sizes: Any

    @staticmethod
    def of(whole: torch.Tensor) -> RealPart:
        """Return the metadata of the real part of a captured tensor."""
        made = torch.empty((0,) * whole.dim(), dtype=whole.dtype.to_real(), device="meta").as_subclass(RealPart)
        made.sizes = whole.shape
        return made

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The captured sizes."""
        return self.sizes


def touches_complex(node: torch.fx.Node) -> bool:
    """Return whether a call has complex arguments or results."""
    return any(_has_complex(each.meta.get("val")) for each in (node, *node.all_input_nodes))


def _has_complex(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_complex, value))
    return isinstance(value, torch.Tensor) and value.is_complex()


@contextmanager
def use_real_meta(g: CurrentNode) -> Iterator[None]:
    """Replace the captured metadata of complex results of the current node by that of one part, inside the context."""
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
