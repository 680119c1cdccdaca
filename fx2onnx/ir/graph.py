"""The graph under construction, to which translations append ONNX operators by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, Literal, Protocol, TypeAlias, overload

import onnx_ir as ir
import sympy
import torch

from ..errors import UnsupportedArgument, Untranslated
from .complex_pairs import ComplexPair
from .constants import Constants
from .context import ModelContext
from .dtypes import FLOAT, onnx_dtype
from .expressions import Size, python_number, runs
from .kernels import widening
from .promotion import common_dtype
from .quantized import STORED, Quantized
from .symbols import Symbols
from .tape import Tape
from .tensor import Tensor

TRANSPOSED = "/T"
__all__ = ["TRANSPOSED", "FunctionBody", "Graph", "SubgraphTranslator", "Tensor"]
Operand: TypeAlias = ir.Value | float | sympy.Basic | Sequence[Size] | None


class FunctionBody(Protocol):
    """The function whose graph is being built: its inputs besides tensors and weights."""

    def number(self, number: sympy.Expr) -> Tensor:
        """Return the input for a symbolic integer that no tensor of the function determines, int64 (1,)."""

    def is_weight(self, value: Tensor) -> bool:
        """Return whether a value is an input that each call passes a weight for."""

    def transpose_matrix(self, weight: Tensor) -> Tensor:
        """Return the input for a weight (m, n), transposed (n, m)."""


SubgraphTranslator = Callable[["Graph", torch.fx.GraphModule, Sequence[Any]], list[Any]]


def _no_subgraphs(g: Graph, module: torch.fx.GraphModule, operands: Sequence[Any]) -> list[Any]:
    raise Untranslated("its subgraphs cannot be translated here")


class Graph(Tape):
    """Appends nodes under their ONNX names, in dtypes that ONNX Runtime has kernels for, and infers the dtypes of their outputs.

    An input may be a tensor, None, a Python number (a constant in the dtype of the first tensor) or a list of sizes (int64).

        >>> import onnx_ir as ir
        >>> from fx2onnx.ir.graph import Graph, Tensor
        >>> from fx2onnx.ir.context import ModelContext
        >>> g = Graph(ModelContext(opset=20))
        >>> x = Tensor(name="x", sizes=(2, 3), type=ir.TensorType(ir.DataType.FLOAT))
        >>> y = g.Softmax(g.Mul(x, 0.5), axis=-1)
        >>> positive = g.Greater(y, 0)
        >>> print(positive.dtype, [node.op_type for node in g.nodes], list(g.shared.initializers))
        BOOL ['Mul', 'Softmax', 'Greater'] ['constant', 'constant/2']

    An equal node is not appended twice:

        >>> g.Softmax(g.Mul(x, 0.5), axis=-1) is y
        True
    """

    def __init__(self, shared: ModelContext, parent: Graph | None = None, isolated: bool = False) -> None:
        super().__init__(shared, parent, isolated)
        around = None if isolated else parent
        self.symbols: Symbols = Symbols(around.symbols if around else None)
        self.constants: Constants = around.constants if around else Constants(shared, self.nodes if isolated else None)
        self.body: FunctionBody | None = around.body if around else None
        self.subgraph: SubgraphTranslator = parent.subgraph if parent else _no_subgraphs

    def child(self) -> Graph:
        """Return an empty subgraph: it can read the values of this graph, but this graph cannot read its values."""
        inner = Graph(self.shared, parent=self)
        inner._at, inner.metadata = self._at, self.metadata
        return inner

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)
        return partial(self.op, op_type)

    @overload
    def op(
        self, op_type: str, *inputs: Operand, domain: str = "", outputs: Literal[1] = 1, merged: bool = True, **attributes: Any
    ) -> Tensor: ...

    @overload
    def op(self, op_type: str, *inputs: Operand, domain: str = "", outputs: int, merged: bool = True, **attributes: Any) -> Any: ...

    def op(self, op_type: str, *inputs: Operand, domain: str = "", outputs: int = 1, merged: bool = True, **attributes: Any) -> Any:
        """Append a node, or reuse an equal one; return its output, or a tuple if it has several.

        Args:
            merged: whether an equal node may be reused.
        """
        if op_type.startswith("Reduce") and len(inputs) > 1 and isinstance(inputs[1], (list, tuple)) and not inputs[1]:
            raise Untranslated(f"in ONNX, {op_type} reduces all axes if the list of axes is empty")  # see `append_reduce`
        values = self._operands(inputs)
        if domain:
            made = self.node(domain, op_type, values, attributes, outputs, merged)
        else:
            made = self.runnable_node(op_type, values, attributes, outputs, merged)
        return made[0] if outputs == 1 else made

    def runnable_node(
        self, op_type: str, values: Sequence[Tensor | None], attributes: dict[str, Any], outputs: int = 1, merged: bool = True
    ) -> tuple[Tensor, ...]:
        """Append a node in dtypes that ONNX Runtime has kernels for; return its outputs, cast back if their dtypes differ."""
        wide, narrow = widening(op_type, self.opset, tuple([None if value is None else value.dtype for value in values]))
        if not wide:
            return self.node("", op_type, values, attributes, outputs, merged)
        values = [self.cast(value, to) if to else value for value, to in zip_longest(values, wide)]
        made = self.node("", op_type, values, attributes, outputs, merged)
        return tuple([self.cast(value, to) if to else value for value, to in zip_longest(made, narrow[:outputs])])

    def _operands(self, inputs: Sequence[Operand]) -> list[Tensor | None]:
        first = next((value for value in inputs if isinstance(value, Tensor)), None)
        values = [self._operand(value, first) for value in inputs]
        while values and values[-1] is None:
            values.pop()
        return values

    def _operand(self, value: Operand, first: Tensor | None) -> Tensor | None:
        if value is None or isinstance(value, Tensor):
            return value
        if isinstance(value, (list, tuple)):
            return self.ints(value)
        if first is None:
            raise TypeError(f"{value!r} has no dtype: pass it as g.const or g.scalar")
        return self.scalar(value, first.dtype)

    def cast(self, value: Any, dtype: torch.dtype | ir.DataType) -> Tensor:
        """Return `value` (a tensor, a number or a size) in another dtype; the same value if it already has that dtype."""
        wanted = onnx_dtype(dtype)
        if not isinstance(value, Tensor):
            return self.scalar(value, wanted)
        if value.dtype == wanted:
            return value
        return self.node("", "Cast", [value], {"to": wanted})[0]

    def promote(self, *operands: Any) -> list[Tensor]:
        """Return all operands in the dtype that torch computes in: numbers and tensors without axes have a lower priority."""
        wanted = self.common_dtype(*operands)
        return [self.cast(operand, wanted) for operand in operands]

    def common_dtype(self, *operands: Any) -> ir.DataType:
        """Return the dtype that torch computes in for these operands."""
        return common_dtype(*operands)

    def const(self, data: Any, dtype: torch.dtype | ir.DataType) -> Tensor:
        """Return a constant tensor of Python numbers, nested lists of them, or a `torch.Tensor`."""
        return self.constants.of(data, onnx_dtype(dtype))

    def scalar(self, value: Any, dtype: torch.dtype | ir.DataType) -> Tensor:
        """Return a value of this dtype without axes, from a number, a symbolic number, or a tensor of one element."""
        if isinstance(value, Tensor):
            return self.cast(value if value.known_sizes == () else self.Reshape(value, []), dtype)
        if isinstance(value, sympy.Basic) and not value.is_number:
            return self.cast(self.symbols.scalar(self, value), dtype)
        return self.const(python_number(value), dtype)

    def ints(self, sizes: Sequence[Size]) -> Tensor:
        """Return an int64 tensor with one axis: a constant, or a Concat if sizes are dynamic."""
        if all(isinstance(size, (int, sympy.Integer)) for size in sizes):
            return self.const([int(size) for size in sizes], ir.DataType.INT64)
        parts = [self.symbols.one(self, part) for part in runs(sizes)]
        return parts[0] if len(parts) == 1 else self.Concat(*parts, axis=0)

    def shape(self, value: Tensor) -> Tensor:
        """Return the sizes of a tensor as an int64 tensor."""
        return self.ints(value.sizes) if value.known_sizes is not None else self.Shape(value)

    def function_input(self, number: sympy.Expr) -> Tensor | None:
        """Return the input of the function being built that passes this number, int64 (1,); None outside a function."""
        return self.body.number(number) if self.body is not None else None

    def initializer(self, name: str, tensor: torch.Tensor) -> Tensor:
        """Return a weight under an unused name; it shares torch's memory, nothing is copied."""
        return self.shared.initializer(name, tensor)

    def initializer_for(self, name: str, tensor: torch.Tensor) -> Tensor | ComplexPair | Quantized:
        """Return a weight under an unused name: for complex numbers both parts, for a quantised one the integers, which are copies."""
        if tensor.is_quantized:
            return self._quantized_initializer_for(name, tensor)
        if not tensor.is_complex():
            return self.initializer(name, tensor)
        parts = ((part, getattr(tensor.resolve_conj(), part).contiguous()) for part in ("real", "imag"))
        return ComplexPair(*(self.initializer(self.shared.names.unique(f"{name}/{part}"), data) for part, data in parts))

    def _quantized_initializer_for(self, name: str, tensor: torch.Tensor) -> Quantized:
        if tensor.dtype not in STORED or tensor.qscheme() not in (torch.per_tensor_affine, torch.per_channel_affine):
            raise UnsupportedArgument(
                f"the weight {name} is {tensor.dtype} ({tensor.qscheme()}), which is not supported: call dequantize() on it"
            )
        values = self.initializer(name, tensor.int_repr())
        if tensor.qscheme() == torch.per_tensor_affine:
            return Quantized(values, self.const(tensor.q_scale(), FLOAT), self.const(tensor.q_zero_point(), values.dtype))
        scales = self.const(tensor.q_per_channel_scales(), FLOAT)
        return Quantized(values, scales, self.const(tensor.q_per_channel_zero_points(), values.dtype), tensor.q_per_channel_axis())

    def is_weight(self, value: Tensor) -> bool:
        """Return whether a value is a weight that no call changes, or an input of a function for one."""
        if self.body is not None:
            return self.body.is_weight(value)
        return value.const_value is not None and value.name in self.shared.initializers and value not in self.shared.may_change

    def transpose_matrix(self, weight: Tensor) -> Tensor:
        """Return a matrix, transposed: for a weight another view of its memory, otherwise a node."""
        if not self.is_weight(weight):
            return self.Transpose(weight, perm=[1, 0])
        if self.body is not None:
            return self.body.transpose_matrix(weight)
        name = f"{weight.name}{TRANSPOSED}"
        data: Any = weight.const_value
        return self.shared.initializers.get(name) or self.initializer(name, data.raw.t())

    def set_sizes(self, value: Tensor, sizes: Sequence[Size]) -> Tensor:
        """Return the same value with known sizes."""
        value.known_sizes = tuple(sizes)
        return value

    def reshape_to(self, value: Tensor, sizes: Sequence[Size]) -> Tensor:
        """Return the same elements in these sizes; the value itself if it has them."""
        if value.known_sizes == tuple(sizes):
            return value
        if 0 in sizes:
            return self.Reshape(value, list(sizes), allowzero=1)
        moving = [i for i, size in enumerate(sizes) if not isinstance(size, int)]
        if len(moving) == 1:
            return self.Reshape(value, [size if isinstance(size, int) else -1 for size in sizes])
        kept = value.known_sizes or ()
        if all(i < len(kept) and kept[i] == sizes[i] for i in moving):
            return self.Reshape(value, [0 if i in moving else size for i, size in enumerate(sizes)])
        return self.Reshape(value, list(sizes), allowzero=1)  # a computed size may be 0, which would copy the size of the input
