"""The captured node that is being translated, and its captured results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir
import torch

from ..compat.operators import OpOverload
from .dtypes import onnx_dtype
from .expressions import Size, sizes_of


def overload_of(node: torch.fx.Node) -> OpOverload | None:
    """Return the operator that a node calls; None if it calls something else."""
    return node.target if isinstance(node.target, OpOverload) else None


class CurrentNode:
    """Tracks the captured node that is being translated."""

    def __init__(self) -> None:
        self._at: torch.fx.Node | None = None
        self.metadata: dict[str, str] = {}

    @contextmanager
    def on(self, node: torch.fx.Node, metadata: dict[str, str]) -> Iterator[None]:
        """Assign nodes that are appended inside the context to this captured node, with this metadata."""
        before = self._at, self.metadata
        self._at, self.metadata = node, metadata
        try:
            yield
        finally:
            self._at, self.metadata = before

    @property
    def at(self) -> torch.fx.Node:
        """The captured node that is being translated."""
        if self._at is None:
            raise LookupError("no node is being translated")
        return self._at

    @property
    def overload(self) -> OpOverload:
        """The operator that is being translated."""
        found = overload_of(self.at)
        if found is None:
            raise TypeError(f"{self.at.target} is not an operator of torch")
        return found

    def result(self, index: int = 0) -> Any:
        """Return the captured result of the node being translated: its fake tensor."""
        found = self.at.meta["val"]
        return found[index] if isinstance(found, (tuple, list)) else found

    @property
    def dtype(self) -> ir.DataType:
        """The dtype of the (first) result of the node being translated."""
        return onnx_dtype(self.result().dtype)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes of the (first) result of the node being translated."""
        return sizes_of(self.result())
