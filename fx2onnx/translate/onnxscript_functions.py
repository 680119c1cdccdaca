"""onnxscript functions as translations: their calls append nodes to our graph.

Importing this module imports onnxscript, which no other module of the package does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir
import onnxscript
import sympy
import torch
from onnxscript.evaluator import default_as

from ..compat.onnxscript_signatures import (
    OpRecorder,
    SymbolicTensor,
    allowed_types_are_sequence_types,
    construct_named_inputs_and_attrs,
    determine_input_dtype,
    resolve_parameter_dtypes,
    signature_of_function,
)
from ..errors import Untranslated
from ..ir.dtypes import onnx_dtype
from ..ir.graph import Graph, Tensor
from ..ir.translation import Translation
from ..patches.registry import apply_patches, register_patch
from . import schema_nodes
from .dispatch import NOT_TRANSLATED

OPSET = onnxscript.values.Opset("", schema_nodes.WRITTEN_IN)


class Traced(SymbolicTensor):
    """One of our values for onnxscript functions: it supports Python operators, and has the number if it is a symbolic number."""

    def __init__(self, ours: Tensor, number: Any = None, sequence: bool = False) -> None:
        known = ir.TensorType(ours.dtype) if ours.dtype is not None else None
        super().__init__(OPSET, ours.name, ours.shape, ir.SequenceType(known) if sequence else known)
        self.ours = ours
        self.number = number
        self.sequence = sequence


class Recorder(OpRecorder):
    """An onnxscript evaluator that appends calls to our graph instead of computing them."""

    def __init__(self, g: Graph) -> None:
        super().__init__(OPSET, {})
        self.g = g

    def _call_op(self, op_signature: Any, named_inputs: Any, named_attrs: Any, num_outputs: int) -> Sequence[Traced]:
        binding = resolve_parameter_dtypes(op_signature, named_inputs)
        operands: list[Any] = []
        for name, value in named_inputs.items():
            parameter = op_signature.params_map[name]
            operands += self._operands(parameter, value, binding)
        attributes = {name: value.value if isinstance(value, ir.Attr) else value for name, value in named_attrs.items()}
        return self._emit(op_signature.domain, op_signature.name, operands, attributes, num_outputs)

    def _operands(self, parameter: Any, value: Any, binding: Any) -> list[Any]:
        """Return the tensors of one argument: itself, a constant, a list of sizes, or, for a variadic argument, several."""
        if value is None or isinstance(value, Traced):
            return [value and value.ours]
        if allowed_types_are_sequence_types(parameter.type_constraint.allowed_types) and isinstance(value, (list, tuple)):
            return [self._emit("", "SequenceConstruct", [part.ours for part in value], {}, 1)[0].ours]
        dtype = determine_input_dtype(parameter, value, binding)
        if parameter.variadic:
            return [part.ours if isinstance(part, Traced) else self.g.const(part, dtype) for part in value]
        if isinstance(value, (list, tuple)) and any(isinstance(part, Traced) for part in value):
            return [_concat_scalars(self.g, value, dtype)]
        return [self.g.const(value.numpy() if isinstance(value, ir.TensorProtocol) else value, dtype)]

    def _emit(self, domain: str, op_type: str, operands: list[Any], attributes: Mapping[str, Any], outputs: int) -> list[Traced]:
        made = schema_nodes.node(self.g, domain, op_type, operands, attributes, outputs)
        return [Traced(value, sequence=schema_nodes.is_sequence(value)) for value in made]

    def eval_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Trace a function if it is traceable, otherwise append the nodes of its body."""
        if function.traceable:
            return super().eval_function(function, args, kwargs)
        results = [
            Traced(value, sequence=schema_nodes.is_sequence(value))
            for value in self.call_function(function, args, kwargs, schema_nodes.inline_function)
        ]
        return results[0] if len(results) == 1 else results

    def call_function(self, function: Any, args: Any, kwargs: Any, call: Callable[..., Sequence[Tensor]]) -> Sequence[Tensor]:
        """Return the result of `call` for an onnxscript function and its arguments, split into inputs and attributes by its signature."""
        domain, version = function.function_ir.domain, function.opset.version
        signature = signature_of_function(function, domain, version)
        inputs, attributes = construct_named_inputs_and_attrs(signature, args, kwargs)
        binding = resolve_parameter_dtypes(signature, inputs)
        operands = [operand for name, value in inputs.items() for operand in self._operands(signature.params_map[name], value, binding)]
        given = {name: value.value if isinstance(value, ir.Attr) else value for name, value in attributes.items()}
        return call(self.g, function, operands, given)


def _concat_scalars(g: Graph, parts: Sequence[Any], dtype: ir.DataType) -> Tensor:
    """Return numbers and tensors without axes as one tensor with one axis."""
    if all(isinstance(part, int) or (isinstance(part, Traced) and part.number is not None) for part in parts):
        return g.ints([part.number if isinstance(part, Traced) else part for part in parts])
    flat = [g.Reshape(part.ours, [-1]) if isinstance(part, Traced) else g.const([part], dtype) for part in parts if part is not None]
    return g.Concat(*flat, axis=0)


def translation_of(function: Callable[..., Any], local: bool = False) -> Translation:
    """Return a translation by an onnxscript function, or by a function that calls its operators (`opset18.Add(x, y)`).

    Args:
        local: whether an `@onnxscript.script` function becomes a local function of the model with a call, instead of being inlined.
    """

    def translation(g: Graph, *args: Any, **kwargs: Any) -> Any:
        recorder = Recorder(g)  # type: ignore[abstract]  # mypy considers a method of onnxscript's protocol abstract
        given = [_wrap_argument(g, argument) for argument in args]
        named = {key: _wrap_argument(g, value) if (key, value) != ("dtype", None) else -1 for key, value in kwargs.items()}
        with _tracing(recorder):
            if local and isinstance(function, onnxscript.OnnxFunction):
                made: Any = [Traced(value) for value in recorder.call_function(function, given, named, schema_nodes.local_call)]
            else:
                made = function(*given, **named)
        return _ours(g, made, recorder.nodes)

    return translation


@contextmanager
def _tracing(recorder: Recorder) -> Iterator[None]:
    """Send onnxscript calls to the recorder inside the context; any error in them is a reason not to use the function."""
    try:
        with apply_patches("onnxscript_functions", recorder=recorder), default_as(recorder):
            yield
    except Exception as error:
        raise Untranslated(_reason(error)) from error


@register_patch(
    "onnxscript_functions",
    "torch.onnx._internal.exporter._core.current_tracer",
    reason="torch's own tracer of such calls makes the nodes itself",
)
def _recorder_of_ours(tracer: Any, recorder: Recorder) -> Recorder:
    return recorder


def _reason(error: BaseException) -> str:
    while not isinstance(error, NOT_TRANSLATED) and error.__cause__ is not None:
        error = error.__cause__
    first = str(error).splitlines()[0] if str(error) else ""
    return first if isinstance(error, NOT_TRANSLATED) else f"{type(error).__name__}: {first}"


def _wrap_argument(g: Graph, argument: Any) -> Any:
    """Return one of our arguments in the form that onnxscript functions accept."""
    if isinstance(argument, Tensor):
        return Traced(argument)
    if isinstance(argument, (list, tuple)):
        return [_wrap_argument(g, part) for part in argument]
    if isinstance(argument, sympy.Basic):
        dtype = torch.bool if argument.is_Boolean else torch.int64 if argument.is_integer else torch.float32
        return Traced(g.scalar(argument, dtype), argument)
    if isinstance(argument, torch.dtype):
        return onnx_dtype(argument)
    return str(argument) if isinstance(argument, (torch.device, torch.layout, torch.memory_format)) else argument


def _ours(g: Graph, made: Any, recorded: Sequence[ir.Node]) -> Any:
    """Return the results of an onnxscript function as a translation does: as many values as the operator has results."""
    for node in recorded:  # appended by `torch.onnx.ops.symbolic`
        _append_recorded(g, node)
    expected = g.at.meta["val"]
    if isinstance(made, (list, tuple)):
        parts = [_single(g, part, value) for part, value in zip(made, _to_list(expected), strict=False)]
        if len(made) != len(_to_list(expected)):
            raise Untranslated(f"the onnxscript function returns {len(made)} results, but the operator has {len(_to_list(expected))}")
        return parts if isinstance(expected, (list, tuple)) else parts[0]
    if isinstance(expected, (list, tuple)) and isinstance(made, Traced) and made.sequence:
        return [schema_nodes.node(g, "", "SequenceAt", [made.ours, g.const(i, torch.int64)], {}, 1)[0] for i in range(len(expected))]
    if len(_to_list(expected)) != 1:
        raise Untranslated(f"the onnxscript function returns 1 result, but the operator has {len(_to_list(expected))}")
    part = _single(g, made, _to_list(expected)[0])
    return [part] if isinstance(expected, (list, tuple)) else part


def _to_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _single(g: Graph, made: Any, value: Any) -> Any:
    if isinstance(made, Traced):
        return made.ours
    if isinstance(made, ir.Value):
        return made.meta["ours"]
    return g.scalar(made, value.dtype) if isinstance(value, torch.Tensor) else made


def _append_recorded(g: Graph, node: ir.Node) -> None:
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    made = schema_nodes.node(
        g,
        node.domain,
        node.op_type,
        [value.ours if isinstance(value, Traced) else None for value in node.inputs],
        attributes,
        len(node.outputs),
    )
    for output, ours in zip(node.outputs, made, strict=True):
        ours.type = output.type or ours.type
        output.meta["ours"] = ours
