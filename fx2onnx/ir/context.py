"""The state that all graphs of one model share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import sympy
import torch
from onnx_ir.tensor_adapters import TorchTensor

from .expressions import Size
from .names import Names
from .tensor import Tensor


class ModelContext:
    """The opset, the names in use, the weights and which of them a call may change, the local functions, and the names of axes."""

    def __init__(self, opset: int, dim_names: Mapping[sympy.Expr, str] | None = None) -> None:
        self.opset = opset
        self.dim_names = dim_names or {}
        self._texts: dict[sympy.Expr, str] = {}
        self.names = Names()
        self.initializers: dict[str, Tensor] = {}
        self.may_change: set[Tensor] = set()
        self.functions: dict[Any, ir.Function] = {}
        self.domains: dict[str, int] = {"": opset}

    def onnx_shape(self, sizes: Sequence[Size]) -> ir.Shape:
        """Return the shape for the exported model: integers, names of axes, and expressions of them."""
        return ir.Shape([size if isinstance(size, int) else self.text(size) for size in sizes])

    def text(self, size: sympy.Expr) -> str:
        """Return an expression with the caller's names of the axes."""
        if size not in self._texts:
            names = {symbol: sympy.Symbol(name) for symbol, name in self.dim_names.items()}
            self._texts[size] = str(size.subs(names))
        return self._texts[size]

    def initializer(self, name: str, tensor: torch.Tensor) -> Tensor:
        """Return a weight under an unused name; it shares torch's memory, nothing is copied."""
        data = TorchTensor(tensor.detach(), name)
        made = Tensor(name=name, sizes=tuple(tensor.shape), type=ir.TensorType(data.dtype), shape=ir.Shape(tensor.shape), const_value=data)
        self.initializers[name] = made
        return made
