"""Appends ONNX nodes of onnxscript functions to our graph, with types inferred from their schemas, and bodies of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir
import torch

from ..errors import Untranslated
from ..ir.dtypes import TORCH, onnx_dtype
from ..ir.graph import Graph, Tensor
from ..ir.output_types import output_types
from ..ir.schemas import schema_of, type_name

SEQUENCES = {"SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence"}
OF_SEQUENCES = SEQUENCES | {"SequenceAt", "SequenceLength", "ConcatFromSequence"}
RENAMED_MODES = {"bilinear": "linear", "bicubic": "cubic"}
CHANGED_MEANING = {"GroupNormalization": 21, "DFT": 20}  # from this opset on, the inputs have another meaning
WRITTEN_IN = 18


def node(g: Graph, domain: str, op_type: str, operands: Sequence[Any], attributes: Mapping[str, Any], outputs: int) -> Sequence[Tensor]:
    """Append a node that was written for opset 18, in the opset of the graph, with the types of its schema.

    Raises:
        Untranslated: it needs another opset or other types, or the type of its first output cannot be inferred.
    """
    given = {name: value for name, value in attributes.items() if value is not None}
    if domain == "" and op_type == "Constant":
        return [constant(g, given)]
    if any(isinstance(value, (ir.Graph, onnx.GraphProto)) for value in given.values()):
        raise Untranslated(f"the onnxscript function calls {op_type} with a subgraph, which is not supported")
    if domain:
        return g.node(domain, op_type, operands, given, outputs)
    given = _convert_attributes(g.opset, op_type, given)
    if op_type == "Cast":
        return [g.cast(operands[0], ir.DataType(given["to"]))]
    if op_type in OF_SEQUENCES:
        return [_add_sequence_node(g, op_type, operands, given)]
    _check_types(op_type, g.opset, operands)
    if output_types("", op_type, g.opset, operands, given, outputs)[0] is None:
        raise Untranslated(f"the onnxscript function calls {op_type}, whose output type cannot be inferred")
    return g.runnable_node(op_type, operands, given, outputs)


def _add_sequence_node(g: Graph, op_type: str, operands: Sequence[Any], given: dict[str, Any]) -> Tensor:
    """Append an operator on sequences, and return its output; the schema does not define the type of the elements."""
    first = next((value.dtype for value in operands if value is not None), ir.DataType(given.get("dtype", ir.DataType.FLOAT)))
    [made] = g.node("", op_type, operands, given)
    made.type = ir.TensorType(ir.DataType.INT64 if op_type == "SequenceLength" else first)
    if op_type in SEQUENCES:
        made.type = ir.SequenceType(made.type)
    return made


def is_sequence(value: Tensor) -> bool:
    """Return whether a value is a sequence of tensors."""
    return isinstance(value.type, ir.SequenceType)


def constant(g: Graph, attributes: Mapping[str, Any]) -> Tensor:
    """Return the value of a Constant node, which is one of its attributes."""
    name, value = next(iter(attributes.items()))
    if name == "value":
        tensor = value if isinstance(value, ir.TensorProtocol) else ir.tensor(value)
        if tensor.dtype not in TORCH:
            raise Untranslated(f"the onnxscript function has a constant of the unsupported type {tensor.dtype.name}")
        return g.const(tensor.numpy(), tensor.dtype)
    if "string" in name:
        raise Untranslated("the onnxscript function has a string constant, which is not supported")
    return g.const(list(value) if name.endswith("s") else value, ir.DataType.FLOAT if "float" in name else ir.DataType.INT64)


def _convert_attributes(opset: int, op_type: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes in the opset of the graph, which may be later than the one that they were written for.

    Raises:
        Untranslated: the operator has another meaning there.
    """
    if op_type == "GridSample" and opset >= 20 and "mode" in given:
        given = {**given, "mode": RENAMED_MODES.get(given["mode"], given["mode"])}
    if opset >= CHANGED_MEANING.get(op_type, opset + 1):
        raise Untranslated(f"the onnxscript function is written for opset {WRITTEN_IN}, but {op_type} has changed since then")
    known = schema_of(op_type, opset).attributes
    if unknown := [name for name in given if name not in known]:
        raise Untranslated(f"in opset {opset}, {op_type} has no attribute {unknown[0]}")
    return given


def _check_types(op_type: str, opset: int, operands: Sequence[Any]) -> None:
    """Refuse types that the schema does not allow, or allows only if they are equal.

    Raises:
        Untranslated: the function was not written for these types.
    """
    schema = schema_of(op_type, opset)
    bound: dict[str, ir.DataType] = {}
    for i, operand in enumerate(operands):
        declared = schema.inputs[min(i, len(schema.inputs) - 1)]
        if operand is None or operand.dtype is None:
            continue
        first = bound.setdefault(declared.type_str, operand.dtype) if declared.is_homogeneous else operand.dtype
        if first != operand.dtype or type_name(operand.dtype) not in declared.types:
            raise Untranslated(
                f"the onnxscript function calls {op_type} with an input of type {operand.dtype.name}, which the schema does not allow"
            )


def inline_function(g: Graph, function: Any, operands: Sequence[Any], given: Mapping[str, Any]) -> list[Tensor]:
    """Append the nodes of an onnxscript function's body; a function with subgraphs becomes a local function of the model.

    Args:
        function: an `onnxscript.OnnxFunction`.
    """
    body = _body(function)
    if any(attribute.type == ir.AttributeType.GRAPH for n in body for attribute in n.attributes.values()):
        return local_call(g, function, operands, given)
    known = {name: attribute.value for name, attribute in body.attributes.items()} | dict(given)
    values: dict[Any, Any] = {None: None, **dict(zip(body.inputs, [*operands, *[None] * len(body.inputs)], strict=False))}
    for inner in body:
        attributes = {n: known.get(a.ref_attr_name or "") if a.is_ref() else a.value for n, a in inner.attributes.items()}
        made = node(g, inner.domain, inner.op_type, [values[value] for value in inner.inputs], attributes, len(inner.outputs))
        values.update(zip(inner.outputs, made, strict=True))
    return [values[output] for output in body.outputs]


def _body(function: Any) -> ir.Function:
    return ir.serde.deserialize_function(function.to_function_proto())


def local_call(g: Graph, function: Any, operands: Sequence[Any], given: Mapping[str, Any]) -> list[Tensor]:
    """Append a call of an onnxscript function, which becomes a local function of the model, with the functions that it calls."""
    captured = g.at.meta["val"]
    captured = captured if isinstance(captured, (tuple, list)) else [captured]
    main = _body(function)
    if len(main.outputs) != len(captured):
        raise Untranslated(f"the onnxscript function returns {len(main.outputs)} results, but the operator has {len(captured)}")
    for body in (main, *map(_body, function.function_ir.get_called_functions().values())):
        _check_opset(g.opset, body)
        g.shared.domains.setdefault(body.domain, 1)
        body.opset_imports[""] = g.opset
        g.shared.functions.setdefault(body.identifier(), body)
    made = g.node(main.domain, main.name, list(operands), given, len(main.outputs))
    for value, fake in zip(made, captured, strict=True):
        value.type = ir.TensorType(onnx_dtype(fake.dtype)) if isinstance(fake, torch.Tensor) else None
    return list(made)


def _check_opset(opset: int, body: ir.Function) -> None:
    for inner in body:
        if inner.domain == "":
            _convert_attributes(opset, inner.op_type, {name: attribute.value for name, attribute in inner.attributes.items()})
