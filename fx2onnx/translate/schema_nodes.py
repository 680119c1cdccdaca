"""ONNX nodes that others wrote, appended to our graph: types by their schemas, bodies of functions. Not here: who wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import onnx
import onnx_ir as ir
import torch

from ..build.dtypes import TORCH, onnx_dtype
from ..build.graph import Graph, Tensor
from ..build.kernels import widening
from ..build.schemas import schema_of, type_name
from ..errors import Untranslated

TYPED_BY_ATTRIBUTE = {"Cast": "to", "EyeLike": "dtype", "RandomNormal": "dtype", "RandomUniform": "dtype", "RandomNormalLike": "dtype",
                      "RandomUniformLike": "dtype", "Bernoulli": "dtype", "Multinomial": "dtype", "SequenceEmpty": "dtype",
                      "HannWindow": "output_datatype", "HammingWindow": "output_datatype", "BlackmanWindow": "output_datatype"}  # fmt: skip
DEFAULT_TYPE = dict.fromkeys(("RandomNormal", "RandomUniform", "HannWindow", "HammingWindow", "BlackmanWindow"), ir.DataType.FLOAT)
TYPED_BY_SECOND = {"CastLike"}
SEQUENCES = {"SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence"}
OF_SEQUENCES = SEQUENCES | {"SequenceAt", "SequenceLength", "ConcatFromSequence"}
RENAMED_MODES = {"bilinear": "linear", "bicubic": "cubic"}
CHANGED_MEANING = {"GroupNormalization": 21, "DFT": 20}  # operators whose inputs mean something else from this opset on
WRITTEN_IN = 18


def node(g: Graph, domain: str, op_type: str, operands: Sequence[Any], attributes: Mapping[str, Any], outputs: int) -> list[Tensor]:
    """A node as somebody wrote it for opset 18, in the opset of the graph, with the types that its schema says."""
    given = {name: value for name, value in attributes.items() if value is not None}
    if domain == "" and op_type == "Constant":
        return [constant(g, given)]
    if any(isinstance(value, (ir.Graph, onnx.GraphProto)) for value in given.values()):
        raise Untranslated(f"the onnxscript function has a graph inside a {op_type}")
    if domain:
        made = g._emit(domain, op_type, list(operands), outputs, given, None)
        return list(made)
    given = _in_opset(g.opset, op_type, given)
    if op_type == "Cast":
        return [g.cast(operands[0], ir.DataType(given["to"]))]
    if op_type in OF_SEQUENCES:
        return [_of_sequence(g, op_type, operands, given)]
    _check_types(op_type, g.opset, operands)
    wide, narrow = widening(op_type, g.opset, tuple(value and value.dtype for value in operands))
    values = [g.cast(value, to) if to else value for value, to in zip_longest(operands, wide)]
    types = output_dtypes(op_type, g.opset, values, given, outputs)
    made = g._emit(domain, op_type, values, outputs, given, types[0])
    for value, dtype in zip(made, types, strict=True):
        value.type = ir.TensorType(dtype) if dtype else value.type
    return [g.cast(value, to) if to else value for value, to in zip_longest(made, narrow[:outputs])]


def _of_sequence(g: Graph, op_type: str, operands: Sequence[Any], given: dict[str, Any]) -> Tensor:
    first = next((value.dtype for value in operands if value is not None), ir.DataType(given.get("dtype", ir.DataType.FLOAT)))
    made = g._emit("", op_type, list(operands), 1, given, ir.DataType.INT64 if op_type == "SequenceLength" else first)[0]
    if op_type in SEQUENCES:
        made.type = ir.SequenceType(ir.TensorType(first))
    return made


def is_sequence(value: Tensor) -> bool:
    """Whether a value is a sequence of tensors."""
    return isinstance(value.type, ir.SequenceType)


def constant(g: Graph, attributes: Mapping[str, Any]) -> Tensor:
    """The one value that a Constant node has among its attributes."""
    name, value = next(iter(attributes.items()))
    if name == "value":
        tensor = value if isinstance(value, ir.TensorProtocol) else ir.tensor(value)
        if tensor.dtype not in TORCH:
            raise Untranslated(f"the onnxscript function has a constant of type {tensor.dtype.name}")
        return g.const(tensor.numpy(), tensor.dtype)
    if "string" in name:
        raise Untranslated("the onnxscript function has a constant that is a text")
    return g.const(list(value) if name.endswith("s") else value, ir.DataType.FLOAT if "float" in name else ir.DataType.INT64)


def _in_opset(opset: int, op_type: str, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes in a later opset than they were written for.

    Raises:
        Untranslated: the operator means something else there.
    """
    if op_type == "GridSample" and opset >= 20 and "mode" in given:
        given = {**given, "mode": RENAMED_MODES.get(given["mode"], given["mode"])}
    if opset >= CHANGED_MEANING.get(op_type, opset + 1):
        raise Untranslated(f"the onnxscript function is written for opset {WRITTEN_IN}, and {op_type} changed since")
    known = schema_of(op_type, opset).attributes
    if unknown := [name for name in given if name not in known]:
        raise Untranslated(f"{op_type} has no attribute {unknown[0]} in opset {opset}")
    return given


def _check_types(op_type: str, opset: int, operands: Sequence[Any]) -> None:
    """Refuses types that the schema does not allow, or allows only when they are the same.

    Raises:
        Untranslated: the function was not written for these types.
    """
    schema, bound = schema_of(op_type, opset), {}
    for i, operand in enumerate(operands):
        declared = schema.inputs[min(i, len(schema.inputs) - 1)]
        if operand is None or operand.dtype is None:
            continue
        first = bound.setdefault(declared.type_str, operand.dtype) if declared.is_homogeneous else operand.dtype
        if first != operand.dtype or type_name(operand.dtype) not in declared.types:
            raise Untranslated(f"the onnxscript function calls {op_type} with {operand.dtype.name}, which it does not take there")


def output_dtypes(op_type: str, opset: int, operands: Sequence[Any], given: Mapping[str, Any], outputs: int) -> list[Any]:
    """The dtype of each output, from an attribute or from the schema's type constraints; None for a further one that they leave open.

    Raises:
        Untranslated: the type of the first output is open.
    """
    if op_type == "ConstantOfShape":
        return [given["value"].dtype if "value" in given else ir.DataType.FLOAT]
    if (name := TYPED_BY_ATTRIBUTE.get(op_type)) and name in given:
        return [ir.DataType(given[name])]
    if op_type in TYPED_BY_SECOND:
        return [operands[1].dtype]
    schema = schema_of(op_type, opset)
    inputs = list(schema.inputs)
    bound = {inputs[min(i, len(inputs) - 1)].type_str: o.dtype for i, o in reversed(list(enumerate(operands))) if o is not None}
    declared = [schema.outputs[min(i, len(schema.outputs) - 1)] for i in range(outputs)]
    found = [bound.get(output.type_str) or _only_type(output) for output in declared]
    if op_type in TYPED_BY_ATTRIBUTE and operands:
        found[0] = found[0] or operands[0].dtype
    found[0] = found[0] or DEFAULT_TYPE.get(op_type)
    if found[0] is None:
        raise Untranslated(f"the onnxscript function calls {op_type}, whose type is not known before it runs")
    return found


def _only_type(output: Any) -> Any:
    types = [text for text in output.types if text.startswith("tensor(")]
    return ir.DataType[_NAMES.get(types[0][7:-1], types[0][7:-1].upper())] if len(types) == 1 else None


_NAMES = {"float": "FLOAT", "double": "DOUBLE"}


def inlined(g: Graph, function: Any, operands: Sequence[Any], given: Mapping[str, Any]) -> list[Tensor]:
    """The nodes of an onnxscript function's body; one that has graphs inside becomes a function of the model.

    Args:
        function: an `onnxscript.OnnxFunction`.
    """
    body = _body(function)
    if any(attribute.type == ir.AttributeType.GRAPH for n in body for attribute in n.attributes.values()):
        return local_call(g, function, operands, given)
    known = {name: attribute.value for name, attribute in body.attributes.items()} | dict(given)
    values: dict[Any, Any] = {None: None, **dict(zip(body.inputs, [*operands, *[None] * len(body.inputs)], strict=False))}
    for inner in body:
        attributes = {n: known.get(a.ref_attr_name) if a.is_ref() else a.value for n, a in inner.attributes.items()}
        made = node(g, inner.domain, inner.op_type, [values[value] for value in inner.inputs], attributes, len(inner.outputs))
        values.update(zip(inner.outputs, made, strict=True))
    return [values[output] for output in body.outputs]


def _body(function: Any) -> ir.Function:
    return ir.serde.deserialize_function(function.to_function_proto())


def local_call(g: Graph, function: Any, operands: Sequence[Any], given: Mapping[str, Any]) -> list[Tensor]:
    """A call of an onnxscript function, which becomes a function of the model with those that it calls."""
    captured = g.at.meta["val"]
    captured = captured if isinstance(captured, (tuple, list)) else [captured]
    main = _body(function)
    if len(main.outputs) != len(captured):
        raise Untranslated(f"the onnxscript function gives {len(main.outputs)} results, the operator {len(captured)}")
    for body in (main, *map(_body, function.function_ir.get_called_functions().values())):
        _check_opset(g.opset, body)
        g.shared.domains.setdefault(body.domain, 1)
        body.opset_imports[""] = g.opset
        g.shared.functions.setdefault(body.identifier(), body)
    given = {name: value for name, value in given.items() if value is not None}
    made = g._emit(main.domain, main.name, list(operands), len(main.outputs), given, None)
    for value, fake in zip(made, captured, strict=True):
        value.type = ir.TensorType(onnx_dtype(fake.dtype)) if isinstance(fake, torch.Tensor) else None
    return list(made)


def _check_opset(opset: int, body: ir.Function) -> None:
    for inner in body:
        if inner.domain == "":
            _in_opset(opset, inner.op_type, {name: attribute.value for name, attribute in inner.attributes.items()})
