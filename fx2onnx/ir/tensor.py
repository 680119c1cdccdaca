"""A value of the graph with its sizes, which may be dynamic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import onnx_ir as ir
import torch

from .expressions import Number, Size


class Tensor(ir.Value):
    """A value of the graph with its dtype and its sizes: integers, or sympy expressions for dynamic sizes.

    `known_sizes` is None if the sizes are unknown; reading `sizes` then raises an error.
    """

    dtype: ir.DataType  # never None in a translation: only a further output of a node from onnxscript may lack a type
    name: str

    def __init__(self, producer: ir.Node | None = None, *, sizes: Sequence[Size] | None = None, **given: Any) -> None:
        super().__init__(producer, **given)
        self.known_sizes = None if sizes is None else tuple(sizes)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The size of each axis."""
        if self.known_sizes is None:
            raise TypeError(f"the sizes of {self.name} are unknown: set them with g.set_sizes")
        return self.known_sizes

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    @property
    def weight(self) -> torch.Tensor | None:
        """The memory of an initialiser, as a torch tensor; None for a computed value."""
        return getattr(self.const_value, "raw", None)


Operand: TypeAlias = Tensor | Number  # an argument of an operator that accepts tensors and numbers
