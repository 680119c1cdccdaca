"""Translations from onnxscript: torchlib's, and functions of the caller's table, their nodes appended as our own. Not here: our own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from types import BuiltinFunctionType, FunctionType
from typing import Any

import onnx_ir as ir
import onnxscript
import sympy
import torch
from onnxscript.evaluator import default_as
from torch.onnx._internal.exporter import _building, _core
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.onnx._internal.exporter._tensors import SymbolicTensor

from ..build.dtypes import FLOATS, onnx_dtype
from ..build.graph import Graph, Tensor
from ..build.translation import Translation
from ..errors import Untranslated
from . import schema_nodes
from .dispatch import NOT_TRANSLATED, Source, first_that_fits, functional_twin, is_own_kind

OPSET = onnxscript.values.Opset("", 18)  # the one that torchlib is written in
WRONG_IN_TORCHLIB = {
    "one element, where torch gives NaN": ("prims::var",),
    "no elements to multiply: ONNX Runtime's Gemm then leaves out beta": ("aten::addmm",),
    "steps of fractions": ("aten::arange", "aten::arange.start", "aten::arange.start_step", "aten::linspace"),
    "numbers and intermediate results in float64": (
        "aten::full", "aten::full_like", "aten::new_full", "aten::fill.Scalar", "aten::softmax.int", "aten::log_softmax.int",
        "aten::special_softmax", "aten::special_log_softmax",
    ),
    "values that overflow on the way": ("aten::log_sigmoid", "aten::special_erfcx", "aten::logcumsumexp"),
    "an option that is passed over": (
        "aten::as_strided", "aten::avg_pool2d", "aten::avg_pool3d", "aten::native_batch_norm", "aten::_native_batch_norm_legit",
        "aten::_native_batch_norm_legit_functional", "aten::scatter_reduce.two",
    ),
    "no axes": ("aten::nonzero", "aten::topk", "aten::linalg_vector_norm"),
    "states of two sizes, which ONNX Runtime then does not run": ("aten::lstm.input",),
    "the sign of zero": ("aten::atan2", "aten::signbit", "aten::copysign.Tensor"),
    "takes the process down": (
        "aten::embedding_bag", "aten::embedding_bag.padding_idx", "aten::_embedding_bag", "aten::_embedding_bag_forward_only",
    ),
}  # fmt: skip
REFUSED = frozenset(name for names in WRONG_IN_TORCHLIB.values() for name in names)


class Traced(SymbolicTensor):
    """One of our values as onnxscript functions take them: with Python operators, and a number for each symbolic number."""

    def __init__(self, ours: Tensor, number: Any = None, sequence: bool = False) -> None:
        known = ir.TensorType(ours.dtype) if ours.dtype is not None else None
        super().__init__(OPSET, ours.name, ours.shape, ir.SequenceType(known) if sequence else known)
        self.ours = ours
        self.number = number
        self.sequence = sequence


class Recorder(_building.OpRecorder):
    """The onnxscript evaluator that appends what a function calls to our graph, instead of computing it."""

    def __init__(self, g: Graph) -> None:
        super().__init__(OPSET, {})
        self.g = g

    def _call_op(self, op_signature: Any, named_inputs: Any, named_attrs: Any, num_outputs: int) -> Sequence[Traced]:
        binding = _building._resolve_parameter_dtypes(op_signature, named_inputs)
        operands: list[Any] = []
        for name, value in named_inputs.items():
            parameter = op_signature.params_map[name]
            operands += self._operands(parameter, value, binding)
        attributes = {name: value.value if isinstance(value, ir.Attr) else value for name, value in named_attrs.items()}
        return self._emitted(op_signature.domain, op_signature.name, operands, attributes, num_outputs)

    def _operands(self, parameter: Any, value: Any, binding: Any) -> list[Any]:
        """The tensors that one argument becomes: itself, a constant, a list of sizes, or, for a variadic one, many."""
        if value is None or isinstance(value, Traced):
            return [value and value.ours]
        if _building._allowed_types_are_sequence_types(parameter.type_constraint.allowed_types) and isinstance(value, (list, tuple)):
            return [self._emitted("", "SequenceConstruct", [part.ours for part in value], {}, 1)[0].ours]
        dtype = _building._determine_input_dtype(parameter, value, binding)
        if parameter.variadic:
            return [part.ours if isinstance(part, Traced) else self.g.const(part, dtype) for part in value]
        if isinstance(value, (list, tuple)) and any(isinstance(part, Traced) for part in value):
            return [_joined(self.g, value, dtype)]
        return [self.g.const(value.numpy() if isinstance(value, ir.TensorProtocol) else value, dtype)]

    def _emitted(self, domain: str, op_type: str, operands: list[Any], attributes: Mapping[str, Any], outputs: int) -> list[Traced]:
        made = schema_nodes.node(self.g, domain, op_type, operands, attributes, outputs)
        return [Traced(value, sequence=schema_nodes.is_sequence(value)) for value in made]

    def eval_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Traces a function that can be, and otherwise appends the nodes of its body."""
        if function.traceable:
            return super().eval_function(function, args, kwargs)
        results = [
            Traced(value, sequence=schema_nodes.is_sequence(value)) for value in self.called(function, args, kwargs, schema_nodes.inlined)
        ]
        return results[0] if len(results) == 1 else results

    def called(self, function: Any, args: Any, kwargs: Any, call: Callable[..., Sequence[Tensor]]) -> Sequence[Tensor]:
        """What `call` makes of an onnxscript function and of its arguments, told apart as inputs and attributes by its signature."""
        domain, version = function.function_ir.domain, function.opset.version
        signature = _building._schemas.op_signature_from_function(function, domain, function.name, since_version=version)
        inputs, attributes = _building._construct_named_inputs_and_attrs(signature, args, kwargs)
        binding = _building._resolve_parameter_dtypes(signature, inputs)
        operands = [operand for name, value in inputs.items() for operand in self._operands(signature.params_map[name], value, binding)]
        given = {name: value.value if isinstance(value, ir.Attr) else value for name, value in attributes.items()}
        return call(self.g, function, operands, given)


def _joined(g: Graph, parts: Sequence[Any], dtype: ir.DataType) -> Tensor:
    """A list of numbers and tensors without axes as one tensor with one axis."""
    if all(isinstance(part, int) or (isinstance(part, Traced) and part.number is not None) for part in parts):
        return g.ints([part.number if isinstance(part, Traced) else part for part in parts])
    flat = [g.Reshape(part.ours, [-1]) if isinstance(part, Traced) else g.const([part], dtype) for part in parts if part is not None]
    return g.Concat(*flat, axis=0)


@cache
def _registry(opset: int) -> ONNXRegistry:
    logger = logging.getLogger(ONNXRegistry.__module__)
    before = logger.level
    logger.setLevel(logging.ERROR)  # it warns that torchvision is missing
    try:
        return ONNXRegistry.from_torchlib(opset)
    finally:
        logger.setLevel(before)


def torchlib_source(opset: int) -> Source:
    """Torchlib as a source of translations, built at the first operator that needs it; in-place operators get those of their twins."""

    def source(node: torch.fx.Node) -> Translation | None:
        target = functional_twin(node.target) or node.target
        if not isinstance(target, torch._ops.OpOverload) or target.name() in REFUSED:
            return None
        if target.namespace == "onnx":
            return partial(_onnx_operator, target.name())
        found = [meta for meta in _registry(opset).get_decomps(target) if not meta.is_complex]
        return partial(_typed, from_onnxscript(found[0].onnx_function)) if found else None

    return source


def _typed(translation: Translation, g: Graph, *args: Any, **kwargs: Any) -> Any:
    """What torchlib makes of a call, unless it computes in another dtype than torch: it takes types to be promoted already."""
    made = translation(g, *args, **kwargs)
    if any(isinstance(argument, ir.Value) and argument.known_sizes == () for argument in args):
        made = _without_axes(g, made)
    for value, fake in zip(_listed(made), _listed(g.at.meta["val"]), strict=True):
        if not isinstance(fake, torch.Tensor):
            continue
        wanted = onnx_dtype(fake.dtype)
        if value.dtype != wanted and (wanted in FLOATS or value.dtype == ir.DataType.BOOL):
            raise Untranslated(f"torchlib computes it in {value.dtype.name}, torch in {wanted.name}")
    return made


def _without_axes(g: Graph, made: Any) -> Any:
    """The same results without the axis that torchlib's constants bring along, where the operator's have none."""
    fakes = _listed(g.at.meta["val"])
    bare = [g.scalar(v, v.dtype) if isinstance(f, torch.Tensor) and f.dim() == 0 else v for v, f in zip(_listed(made), fakes, strict=True)]
    return bare if isinstance(made, (list, tuple)) else bare[0]


def _onnx_operator(name: str, g: Graph, *inputs: Any, **attributes: Any) -> Any:
    """`torch.ops.onnx.RotaryEmbedding.opset23` → the ONNX operator of that name."""
    outputs = len(g.result()) if isinstance(g.at.meta["val"], (tuple, list)) else 1
    made = schema_nodes.node(g, "", name.removeprefix("onnx::").partition(".")[0], list(inputs), attributes, outputs)
    return made[0] if outputs == 1 else made


def from_onnxscript(function: Callable[..., Any], local: bool = False) -> Translation:
    """A function of onnxscript, or one that calls its operators (`opset18.Add(x, y)`), as a translation of ours.

    Args:
        local: a function made by `@onnxscript.script` becomes a function of the model and a call of it, not its nodes.
    """

    def translation(g: Graph, *args: Any, **kwargs: Any) -> Any:
        recorder = Recorder(g)
        given = [_traced(g, argument) for argument in args]
        named = {key: _traced(g, value) if (key, value) != ("dtype", None) else -1 for key, value in kwargs.items()}
        with _tracing(recorder):
            if local and isinstance(function, onnxscript.OnnxFunction):
                made: Any = [Traced(value) for value in recorder.called(function, given, named, schema_nodes.local_call)]
            else:
                made = function(*given, **named)
        return _ours(g, made, recorder.nodes)

    return translation


@contextmanager
def _tracing(recorder: Recorder) -> Iterator[None]:
    """While it lasts, onnxscript calls go to the recorder; whatever goes wrong in them is a reason not to use the function."""
    before = _core.current_tracer
    _core.current_tracer = recorder
    try:
        with default_as(recorder):
            yield
    except Exception as error:
        raise Untranslated(_reason(error)) from error
    finally:
        _core.current_tracer = before


def _reason(error: BaseException) -> str:
    while not isinstance(error, NOT_TRANSLATED) and error.__cause__ is not None:
        error = error.__cause__
    first = str(error).splitlines()[0] if str(error) else ""
    return first if isinstance(error, NOT_TRANSLATED) else f"{type(error).__name__}: {first}"


def _traced(g: Graph, argument: Any) -> Any:
    """An argument of ours as onnxscript functions take it."""
    if isinstance(argument, ir.Value):
        return Traced(argument)
    if isinstance(argument, (list, tuple)):
        return [_traced(g, part) for part in argument]
    if isinstance(argument, sympy.Basic):
        dtype = torch.bool if argument.is_Boolean else torch.int64 if argument.is_integer else torch.float32
        return Traced(g.scalar(argument, dtype), argument)
    if isinstance(argument, torch.dtype):
        return onnx_dtype(argument)
    return str(argument) if isinstance(argument, (torch.device, torch.layout, torch.memory_format)) else argument


def _ours(g: Graph, made: Any, recorded: Sequence[ir.Node]) -> Any:
    """What an onnxscript function returned, as translations return it: as many values as the operator has results."""
    for node in recorded:  # appended by `torch.onnx.ops.symbolic`
        _append_recorded(g, node)
    expected = g.at.meta["val"]
    if isinstance(made, (list, tuple)):
        parts = [_single(g, part, value) for part, value in zip(made, _listed(expected), strict=False)]
        if len(made) != len(_listed(expected)):
            raise Untranslated(f"the onnxscript function gives {len(made)} results, the operator {len(_listed(expected))}")
        return parts if isinstance(expected, (list, tuple)) else parts[0]
    if isinstance(expected, (list, tuple)) and isinstance(made, Traced) and made.sequence:
        return [schema_nodes.node(g, "", "SequenceAt", [made.ours, g.const(i, torch.int64)], {}, 1)[0] for i in range(len(expected))]
    if len(_listed(expected)) != 1:
        raise Untranslated(f"the onnxscript function gives 1 result, the operator {len(_listed(expected))}")
    part = _single(g, made, _listed(expected)[0])
    return [part] if isinstance(expected, (list, tuple)) else part


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _single(g: Graph, made: Any, value: Any) -> Any:
    if isinstance(made, Traced):
        return made.ours
    if isinstance(made, ir.Value):
        return made.meta["ours"]
    return g.scalar(made, value.dtype) if isinstance(value, torch.Tensor) else made


def _append_recorded(g: Graph, node: ir.Node) -> None:
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    made = schema_nodes.node(g, node.domain, node.op_type, [value and value.ours for value in node.inputs], attributes, len(node.outputs))
    for output, ours in zip(node.outputs, made, strict=True):
        ours.type = output.type or ours.type
        output.meta["ours"] = ours


def custom_table(table: Mapping[Any, Any], opset: int) -> dict[Any, Translation]:
    """The caller's table with an overload for each operator and a translation of our kind for each function.

    A value may be a list of functions: the first that fits is used.

    Raises:
        TypeError: a key is no operator of torch, or a value is not callable.
        ValueError: an operator has several overloads, or a list is empty.
    """
    return {_operator(key): _translation(key, value) for key, value in table.items()}


def _operator(key: Any) -> Any:
    if isinstance(key, (torch._ops.OpOverload, torch._ops.HigherOrderOperator, FunctionType, BuiltinFunctionType)):
        return key
    if not isinstance(key, torch._ops.OpOverloadPacket):
        raise TypeError(f"custom_translation_table: {key!r} is no operator of torch; give one like torch.ops.aten.add.Tensor")
    overloads = key.overloads()
    if len(overloads) != 1:
        raise ValueError(f"custom_translation_table: {key} has the overloads {', '.join(overloads)}; name one, like {key}.{overloads[0]}")
    return getattr(key, overloads[0])


def _translation(key: Any, value: Any) -> Translation:
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"custom_translation_table: the list of functions for {key} is empty")
        return first_that_fits([_translation(key, part) for part in value])
    if not callable(value):
        raise TypeError(f"custom_translation_table: the value for {key} is {value!r}, which cannot be called")
    return value if is_own_kind(value) else from_onnxscript(value, local=True)
