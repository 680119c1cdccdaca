"""The constants of a graph; equal ones are merged."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from .context import ModelContext
from .dtypes import TORCH, onnx_dtype
from .expressions import bytes_of, exact_dtype
from .tensor import Tensor


class Constants:
    """Constants of a graph and its subgraphs.

    Args:
        function_nodes: the nodes of the function to which Constant nodes are added; None in the main graph, where constants become
            initialisers.
    """

    def __init__(self, shared: ModelContext, function_nodes: list[ir.Node] | None = None) -> None:
        self._shared = shared
        self._function_nodes = function_nodes
        self._by_text: dict[tuple[ir.DataType, str], Tensor] = {}
        self._by_bytes: dict[Any, Tensor] = {}

    def of(self, data: Any, dtype: ir.DataType) -> Tensor:
        """Return the constant of a Python number, a nested list of them, or a `torch.Tensor`."""
        if not isinstance(data, (int, float, list)):
            return self._intern_tensor(data, dtype)
        key = (dtype, repr(data))
        if key not in self._by_text:
            self._by_text[key] = self._intern_tensor(data, dtype)
        return self._by_text[key]

    def _intern_tensor(self, data: Any, dtype: ir.DataType) -> Tensor:
        tensor = (data if isinstance(data, torch.Tensor) else torch.tensor(data, dtype=exact_dtype(data))).to(TORCH[dtype])
        key = (dtype, tuple(tensor.shape), bytes_of(tensor))
        if key not in self._by_bytes:
            self._by_bytes[key] = self._new(tensor)
        return self._by_bytes[key]

    def _new(self, tensor: torch.Tensor) -> Tensor:
        name = self._shared.names.unique("constant")
        if self._function_nodes is None:
            return self._shared.initializer(name, tensor)
        value = ir.tensor(tensor.contiguous(), dtype=onnx_dtype(tensor.dtype))
        made = Tensor(name=name, sizes=tuple(tensor.shape), type=ir.TensorType(value.dtype))
        self._function_nodes.insert(0, ir.Node("", "Constant", (), [ir.AttrTensor("value", value)], outputs=[made], name=name))
        return made
