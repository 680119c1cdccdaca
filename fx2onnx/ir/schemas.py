"""The ONNX schemas of an opset."""

from __future__ import annotations

from functools import cache

import onnx
import onnx_ir as ir

from ..errors import Untranslated


@cache
def schema_of(op_type: str, opset: int) -> onnx.defs.OpSchema:
    """Return the schema of an ONNX operator in an opset.

    Raises:
        Untranslated: the opset has no such operator.
    """
    try:
        return onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError as error:
        raise Untranslated(f"opset {opset} has no operator {op_type}") from error


@cache
def type_constraints(op_type: str, opset: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the type constraints of each input and output; variadic ones count once.

    Raises:
        Untranslated: the opset has no such operator.
    """
    schema = schema_of(op_type, opset)
    return tuple(p.type_str for p in schema.inputs), tuple(p.type_str for p in schema.outputs)


@cache
def allowed_types(op_type: str, opset: int) -> dict[str, frozenset[str]]:
    """Return the types that each type constraint allows, such as `tensor(float)`."""
    return {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema_of(op_type, opset).type_constraints}


def type_name(dtype: ir.DataType) -> str:
    """Return the type in the notation of schemas: `tensor(float)`."""
    return f"tensor({dtype.name.lower()})"
