"""The graph under construction: appending ONNX nodes, equal ones once, with constants, sizes and types. Not here: what to append."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any, Protocol

import onnx_ir as ir
import sympy
import torch
from onnx_ir.tensor_adapters import TorchTensor

from ..errors import Untranslated
from . import dtypes
from .dtypes import BOOL, onnx_dtype
from .kernels import widening
from .names import Names
from .symbols import Symbols
from .tensor import Tensor
from .values import Size, attribute, bytes_of, exact_dtype, hashable, python_number, runs, sizes_of

BOOLEAN = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf"}
INTEGER = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero"}
FURTHER = {
    "TopK": ir.DataType.INT64,
    "MaxPool": ir.DataType.INT64,
    "Unique": ir.DataType.INT64,
    "Dropout": BOOL,
}  # outputs after the first
UNARY = {"Cast", "Neg", "Abs", "Not", "Exp", "Log", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Sign", "Identity", "IsNaN", "IsInf"}
RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
TRANSPOSED = "/T"
__all__ = ["TRANSPOSED", "FunctionBody", "Graph", "Shared", "SubgraphTranslator", "Tensor"]


class Shared:
    """What all graphs of one model share: names, initialisers, symbols, the opset, and what was seen on the way."""

    def __init__(self, opset: int, dim_names: dict[sympy.Expr, str] | None = None) -> None:
        self.opset = opset
        self.dim_names = dim_names or {}
        self._texts: dict[Any, str] = {}
        self.names = Names()
        self.initializers: dict[str, Tensor] = {}
        self.constants: dict[Any, Tensor] = {}
        self.functions: dict[Any, ir.Function] = {}
        self.domains: dict[str, int] = {"": opset}

    def onnx_shape(self, sizes: Sequence[Size]) -> ir.Shape:
        """The shape as it stands in the file: integers, names of axes, and expressions of them."""
        return ir.Shape([size if isinstance(size, int) else self.text(size) for size in sizes])

    def text(self, size: sympy.Expr) -> str:
        """An expression, in the names that the caller gave the axes."""
        if size not in self._texts:
            names = {symbol: sympy.Symbol(name) for symbol, name in self.dim_names.items()}
            self._texts[size] = str(size.subs(names))
        return self._texts[size]


class FunctionBody(Protocol):
    """The function whose graph is being built: what a call of it passes besides its tensors and weights."""

    def number(self, number: sympy.Expr) -> Tensor:
        """Return the input for a symbolic integer that no tensor of the function tells, int64 (1,)."""

    def transposed(self, weight: Tensor) -> Tensor | None:
        """Return the input for a weight (m, n) of the block, transposed (n, m); None when it is no weight of the block."""


SubgraphTranslator = Callable[["Graph", torch.fx.GraphModule, Sequence[Any]], list[Any]]


def _no_subgraphs(g: Graph, module: torch.fx.GraphModule, operands: Sequence[Any]) -> list[Any]:
    raise Untranslated("no translation of the graphs inside it was given to this graph")


class Graph:
    """Appends nodes under their ONNX names: `g.MatMul(a, b)`, `g.Softmax(x, axis=-1)`.

    An input may be a tensor, None, a Python number (a constant in the dtype of the first tensor) or a list of sizes (int64).
    """

    def __init__(self, shared: Shared, parent: Graph | None = None, isolated: bool = False) -> None:
        self.shared = shared
        self.parent = parent
        self.isolated = isolated
        self.nodes: list[ir.Node] = []
        self.seen: dict[Any, tuple[Tensor, ...]] = {}
        self.symbols: Symbols = Symbols() if parent is None or isolated else Symbols(parent.symbols)
        self._at: torch.fx.Node | None = None
        self.subgraph: SubgraphTranslator = parent.subgraph if parent else _no_subgraphs
        self.body: FunctionBody | None = None
        self.metadata: dict[str, str] = {}

    def __getattr__(self, op_type: str) -> Any:
        if not op_type[0].isupper():
            raise AttributeError(op_type)
        return partial(self.op, op_type)

    @property
    def opset(self) -> int:
        """The opset version of the model."""
        return self.shared.opset

    @property
    def at(self) -> torch.fx.Node:
        """The node of the capture that is being translated."""
        if self._at is None:
            raise LookupError("no node is being translated")
        return self._at

    @property
    def overload(self) -> torch._ops.OpOverload:
        """The operator that is being translated."""
        target = self.at.target
        if not isinstance(target, torch._ops.OpOverload):
            raise TypeError(f"{target} is no operator of torch's library")
        return target

    def op(
        self, op_type: str, *inputs: Any, domain: str = "", outputs: int = 1, dtype: Any = None, merged: bool = True, **attributes: Any
    ) -> Any:
        """Appends a node, or finds the equal one that is there; its output, or a tuple of them when there are more.

        Args:
            dtype: of the first output, where it is not that of the first input.
            merged: whether an equal node that is there already may serve.
        """
        values, narrow = self._operands(inputs), ()
        if domain == "":
            values, narrow = self._widened(op_type, values)
        made = self._emit(domain, op_type, values, outputs, attributes, dtype and onnx_dtype(dtype), merged)
        made = tuple(self.cast(value, to) if to else value for value, to in zip_longest(made, narrow[:outputs]))
        return made[0] if outputs == 1 else made

    def _operands(self, inputs: Sequence[Any]) -> list[Tensor | None]:
        first = next((value for value in inputs if isinstance(value, ir.Value)), None)
        values = [self._operand(value, first) for value in inputs]
        while values and values[-1] is None:
            values.pop()
        return values

    def _operand(self, value: Any, first: ir.Value | None) -> Tensor | None:
        if value is None or isinstance(value, ir.Value):
            return value
        if isinstance(value, (list, tuple)):
            return self.ints(value)
        if first is None:
            raise TypeError(f"{value!r} needs a dtype: make it with g.const or g.scalar")
        return self.scalar(value, first.dtype)

    def _emit(
        self,
        domain: str,
        op_type: str,
        values: list[Tensor | None],
        outputs: int,
        attributes: dict[str, Any],
        dtype: Any,
        merged: bool = True,
    ) -> tuple[Tensor, ...]:
        given = {name: value for name, value in attributes.items() if value is not None}
        plain = merged and not any(isinstance(value, ir.Graph) for value in given.values()) and op_type not in RANDOM
        key = (domain, op_type, tuple(map(id, values)), outputs, tuple((n, hashable(v)) for n, v in given.items()))
        if plain and (found := self._find(key)):
            return found
        made = self._append(domain, op_type, values, outputs, given, dtype)
        if plain:
            self.seen[key] = made
        return made

    def _find(self, key: Any) -> tuple[Tensor, ...] | None:
        scope: Graph | None = self
        while scope is not None:
            if key in scope.seen:
                return scope.seen[key]
            scope = None if scope.isolated else scope.parent
        return None

    def _append(
        self, domain: str, op_type: str, values: list[Tensor | None], outputs: int, given: dict[str, Any], dtype: Any
    ) -> tuple[Tensor, ...]:
        base = f"{self._at.name if self._at else 'main'}/{op_type}"
        types = _output_types(op_type, values, given, outputs, dtype)
        sizes = values[0].known_sizes if op_type in UNARY else None
        made = tuple(Tensor(name=self.shared.names.unique(base), sizes=sizes, type=ir.TensorType(kind) if kind else None) for kind in types)
        if domain not in self.shared.domains:
            self.shared.domains[domain] = 1
        attributes = [attribute(name, value) for name, value in given.items()]
        self.nodes.append(ir.Node(domain, op_type, values, attributes, outputs=made, name=made[0].name, metadata_props=dict(self.metadata)))
        return made

    def _widened(self, op_type: str, values: list[Tensor | None]) -> tuple[list[Tensor | None], Sequence[Any]]:
        """The inputs in types that ONNX Runtime has kernels for, and the types to cast the outputs back to, where that changed any."""
        wide, narrow = widening(op_type, self.opset, tuple(value and value.dtype for value in values))
        if not wide:
            return values, ()
        return [self.cast(value, to) if to else value for value, to in zip(values, wide, strict=True)], narrow

    def cast(self, value: Any, dtype: Any) -> Tensor:
        """`value` (a tensor, a number or a size) in another dtype; the same value when it has it already."""
        wanted = onnx_dtype(dtype)
        if not isinstance(value, ir.Value):
            return self.scalar(value, wanted)
        if value.dtype == wanted:
            return value
        return self._emit("", "Cast", [value], 1, {"to": wanted}, wanted)[0]

    def const(self, data: Any, dtype: Any) -> Tensor:
        """A constant tensor of Python numbers, nested lists of them, or a `torch.Tensor`."""
        wanted = onnx_dtype(dtype)
        plain = (wanted, repr(data)) if isinstance(data, (int, float, list)) else None
        if plain is not None and plain in self._constants():
            return self._constants()[plain]
        made = self._constant(data, wanted)
        if plain is not None:
            self._constants()[plain] = made
        return made

    def _constant(self, data: Any, wanted: ir.DataType) -> Tensor:
        tensor = (data if isinstance(data, torch.Tensor) else torch.tensor(data, dtype=exact_dtype(data))).to(dtypes.TORCH[wanted])
        key = (wanted, tuple(tensor.shape), bytes_of(tensor))
        if key not in self._constants():
            self._constants()[key] = self._new_constant(tensor)
        return self._constants()[key]

    def _constants(self) -> dict[Any, Tensor]:
        return self.home().seen if self.home().isolated else self.shared.constants

    def passed(self, number: sympy.Expr) -> Tensor | None:
        """Return the input by which the function being built is passed a number, int64 (1,); None outside of a function."""
        body = self.home().body
        return body.number(number) if body is not None else None

    def home(self) -> Graph:
        """The graph whose constants can be seen from here: the main one, or that of the function being built."""
        scope = self
        while scope.parent is not None and not scope.isolated:
            scope = scope.parent
        return scope

    def _new_constant(self, tensor: torch.Tensor) -> Tensor:
        if not self.home().isolated:
            return self.initializer(self.shared.names.unique("constant"), tensor)
        value = ir.tensor(tensor.contiguous(), dtype=onnx_dtype(tensor.dtype))
        made = Tensor(name=self.shared.names.unique("constant"), sizes=tuple(tensor.shape), type=ir.TensorType(value.dtype))
        self.home().nodes.insert(0, ir.Node("", "Constant", (), [ir.AttrTensor("value", value)], outputs=[made], name=made.name))
        return made

    def initializer(self, name: str, tensor: torch.Tensor) -> Tensor:
        """A weight under a name that is free; its memory is torch's own, nothing is copied."""
        data = TorchTensor(tensor.detach(), name)
        made = Tensor(name=name, sizes=tuple(tensor.shape), type=ir.TensorType(data.dtype), shape=ir.Shape(tensor.shape), const_value=data)
        self.shared.initializers[name] = made
        return made

    def transposed(self, weight: Tensor) -> Tensor:
        """A matrix, transposed: a weight by another view of its memory, anything else by a node."""
        if (body := self.home().body) is not None and (formal := body.transposed(weight)) is not None:
            return formal
        if weight.const_value is None or weight.name not in self.shared.initializers:
            return self.Transpose(weight, perm=[1, 0])
        name = f"{weight.name}{TRANSPOSED}"
        return self.shared.initializers.get(name) or self.initializer(name, weight.const_value.raw.t())

    def scalar(self, value: Any, dtype: Any) -> Tensor:
        """A value without axes of this dtype, of a number, a symbolic number, or a tensor of one element."""
        if isinstance(value, ir.Value):
            return self.cast(value if value.known_sizes == () else self.Reshape(value, []), dtype)
        if isinstance(value, sympy.Basic) and not value.is_number:
            return self.cast(self.symbols.scalar(self, value), dtype)
        return self.const(python_number(value), dtype)

    def ints(self, sizes: Sequence[Size]) -> Tensor:
        """An int64 tensor with one axis: a constant, or the concatenation of those that move."""
        if all(isinstance(size, (int, sympy.Integer)) for size in sizes):
            return self.const([int(size) for size in sizes], torch.int64)
        parts = [self.symbols.one(self, part) for part in runs(sizes)]
        return parts[0] if len(parts) == 1 else self.Concat(*parts, axis=0)

    def shape(self, value: Tensor) -> Tensor:
        """The sizes of a tensor as an int64 tensor."""
        return self.ints(value.sizes) if value.known_sizes is not None else self.Shape(value)

    def copied(self, value: Tensor) -> Tensor:
        """An Identity of its own, for an output that is an input, a weight, or an output already."""
        (copy,) = self._append("", "Identity", [value], 1, {}, value.dtype)
        copy.shape, copy.known_sizes = value.shape, value.known_sizes
        return copy

    def sized(self, value: Tensor, sizes: Sequence[Size]) -> Tensor:
        """The same value, whose sizes are now known."""
        value.known_sizes = tuple(sizes)
        return value

    def reshaped(self, value: Tensor, sizes: Sequence[Size]) -> Tensor:
        """The same elements in these sizes; the value itself when it has them."""
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
        return self.Reshape(value, list(sizes), allowzero=1)  # a computed size may be 0, which would copy the axis

    def result(self, index: int = 0) -> Any:
        """What the capture says of the node being translated: the fake tensor that it returns."""
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

    def promote(self, *operands: Any) -> list[Tensor]:
        """All operands in the dtype that torch computes in: numbers and tensors without axes yield to the others."""
        wanted = self.common_dtype(*operands)
        return [self.cast(operand, wanted) for operand in operands]

    def common_dtype(self, *operands: Any) -> ir.DataType:
        """The dtype that torch computes in, given these operands."""
        return dtypes.result_dtype(*map(_kind, operands))

    def child(self) -> Graph:
        """An empty graph inside this one: it reads the values of this one, and nothing made in it can be seen from here."""
        inner = Graph(self.shared, parent=self)
        inner._at, inner.metadata = self._at, self.metadata
        return inner

    @contextmanager
    def on(self, node: torch.fx.Node, metadata: dict[str, str]) -> Iterator[None]:
        """While it lasts, what is appended belongs to this node of the capture."""
        before = self._at, self.metadata
        self._at, self.metadata = node, metadata
        try:
            yield
        finally:
            self._at, self.metadata = before


def _output_types(op_type: str, values: list[Any], given: dict[str, Any], outputs: int, dtype: Any) -> list[Any]:
    first = next((value.dtype for value in values if value is not None), None)
    if op_type in BOOLEAN:
        first = ir.DataType.BOOL
    elif op_type in INTEGER:
        first = ir.DataType.INT64
    elif op_type == "Where":
        first = values[1].dtype
    elif op_type in ("Cast", "RandomNormal", "RandomUniform"):
        first = given.get("to", given.get("dtype"))
    return [dtype or first] + [FURTHER.get(op_type, first)] * (outputs - 1)


def _kind(operand: Any) -> tuple[Any, bool]:
    """What decides the promotion: the dtype and whether there are no axes, or the Python type."""
    if isinstance(operand, ir.Value):
        return operand.dtype, operand.known_sizes == ()
    if isinstance(operand, sympy.Basic):
        return (bool if operand.is_Boolean or operand.is_Relational else int if operand.is_integer else float), True
    return type(operand), True
