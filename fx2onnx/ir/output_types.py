"""The dtypes of a node's outputs, according to its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

from .dtypes import FLOAT, INT32
from .schemas import schema_of

Dtypes = tuple[ir.DataType | None, ...]
ATTRIBUTE = {
    "Cast": "to", "BitCast": "to", "EyeLike": "dtype", "RandomNormal": "dtype", "RandomUniform": "dtype", "RandomNormalLike": "dtype",
    "RandomUniformLike": "dtype", "Bernoulli": "dtype", "Multinomial": "dtype", "SequenceEmpty": "dtype", "ConstantOfShape": "value",
    "HannWindow": "output_datatype", "HammingWindow": "output_datatype", "BlackmanWindow": "output_datatype",
    "DequantizeLinear": "output_dtype",
}  # fmt: skip
WITHOUT_IT = {
    **dict.fromkeys(("RandomNormal", "RandomUniform", "ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow"), FLOAT),
    "Multinomial": INT32,
}
SCALE = 1  # the input of DequantizeLinear with the dtype of the output


def output_types(
    domain: str, op_type: str, opset: int, operands: Sequence[ir.Value | None], attributes: Mapping[str, Any], outputs: int
) -> Dtypes:
    """Return the dtype of each output; None if the schema leaves it open.

    An operator of a custom domain has no schema: its outputs are assumed to have the dtype of the first operand.

    Raises:
        Untranslated: the opset has no such operator.
    """
    given = tuple(None if operand is None else operand.dtype for operand in operands)
    if domain:
        return (next((dtype for dtype in given if dtype is not None), None),) * outputs
    said = attributes.get(ATTRIBUTE[op_type]) if op_type in ATTRIBUTE else None
    return _infer_from_schema(op_type, opset, given, getattr(said, "dtype", said), outputs)  # for a tensor, its dtype


@cache
def _infer_from_schema(op_type: str, opset: int, given: Dtypes, said: int | None, outputs: int) -> Dtypes:
    """Return the dtypes of outputs for inputs of these dtypes; `said` is the attribute that determines the first output, if any."""
    schema = schema_of(op_type, opset)
    bound = _bound(schema, given)
    declared = [schema.outputs[min(i, len(schema.outputs) - 1)] for i in range(outputs)]
    if op_type == "DequantizeLinear":
        bound.setdefault(schema.outputs[0].type_str, given[SCALE] or FLOAT)  # from opset 23 on the schema leaves it open
    first, *further = [bound.get(output.type_str) or _only_type(output) for output in declared]
    if op_type in ATTRIBUTE:
        first = ir.DataType(said) if said is not None else WITHOUT_IT.get(op_type) or first or given[0]
    return (first, *further)


def _bound(schema: onnx.defs.OpSchema, given: Dtypes) -> dict[str, ir.DataType]:
    """Return the dtype of each type constraint of the inputs; inputs of a heterogeneous variadic parameter determine nothing."""
    bound: dict[str, ir.DataType] = {}
    for i, dtype in enumerate(given):
        declared = schema.inputs[min(i, len(schema.inputs) - 1)]
        if dtype is not None and declared.is_homogeneous:
            bound.setdefault(declared.type_str, dtype)
    return bound


def _only_type(output: onnx.defs.OpSchema.FormalParameter) -> ir.DataType | None:
    types = [text for text in output.types if text.startswith("tensor(")]
    return ir.DataType[types[0].removeprefix("tensor(").removesuffix(")").upper()] if len(types) == 1 else None
