"""Which ONNX type a torch dtype is, which dtype an operation is done in, and which types ONNX Runtime has a kernel for. Not here: casts."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx
import onnx_ir as ir
import torch

ONNX = {
    torch.float32: ir.DataType.FLOAT,
    torch.float64: ir.DataType.DOUBLE,
    torch.float16: ir.DataType.FLOAT16,
    torch.bfloat16: ir.DataType.BFLOAT16,
    torch.int8: ir.DataType.INT8,
    torch.int16: ir.DataType.INT16,
    torch.int32: ir.DataType.INT32,
    torch.int64: ir.DataType.INT64,
    torch.uint8: ir.DataType.UINT8,
    torch.uint16: ir.DataType.UINT16,
    torch.uint32: ir.DataType.UINT32,
    torch.uint64: ir.DataType.UINT64,
    torch.bool: ir.DataType.BOOL,
}
TORCH = {onnx_type: torch_dtype for torch_dtype, onnx_type in ONNX.items()}
BOOL, UINT8, UINT16, UINT32, UINT64 = ir.DataType.BOOL, ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64
INT8, INT16, INT32, INT64 = ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64
FLOAT16, BFLOAT16, FLOAT, DOUBLE = ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE
HALVES = (FLOAT16, BFLOAT16)
FLOATS = (*HALVES, FLOAT, DOUBLE)
WIDER = {
    ir.DataType.BOOL: ("UINT8", "INT32", "INT64", "FLOAT"),
    ir.DataType.INT8: ("INT32", "INT64", "FLOAT"),
    ir.DataType.INT16: ("INT32", "INT64", "FLOAT"),
    ir.DataType.INT32: ("INT64", "DOUBLE"),
    ir.DataType.INT64: (),
    ir.DataType.UINT8: ("INT32", "INT64", "FLOAT"),
    ir.DataType.UINT16: ("INT32", "INT64", "FLOAT"),
    ir.DataType.UINT32: ("INT64", "DOUBLE"),
    ir.DataType.UINT64: (),
    ir.DataType.FLOAT16: ("FLOAT",),
    ir.DataType.BFLOAT16: ("FLOAT",),
    ir.DataType.FLOAT: ("DOUBLE",),
    ir.DataType.DOUBLE: (),
}
SUBGRAPHS = ("If", "Loop", "Scan")
RUNTIME_NAMES = {"FLOAT": "float", "DOUBLE": "double"}


class Unrunnable(TypeError):
    """ONNX Runtime has no kernel for this operator in this type, nor in a wider one that would hold its values."""


def onnx_dtype(dtype: torch.dtype | ir.DataType) -> ir.DataType:
    """The ONNX type.

    Raises:
        Unrunnable: ONNX has none that is run (complex numbers, quantised types).
    """
    if isinstance(dtype, ir.DataType):
        return dtype
    if dtype not in ONNX:
        raise Unrunnable(f"{dtype} is no type that ONNX Runtime computes with")
    return ONNX[dtype]


@cache
def result_dtype(*operands: tuple[Any, bool]) -> ir.DataType:
    """The dtype that torch computes in, for `(dtype or Python type, has no axes)` of each operand: numbers and 0-d tensors yield."""
    examples = [_example(*operand) for operand in operands]
    dtype = torch.result_type(examples[0], examples[-1])
    for example in examples[1:-1]:
        dtype = torch.promote_types(dtype, torch.result_type(examples[0], example))
    return ONNX[dtype]


def _example(kind: Any, scalar: bool) -> Any:
    if isinstance(kind, type):
        return kind(1)
    return torch.empty(() if scalar else (1,), dtype=TORCH[kind], device="cpu")


@cache
def runnable(domain: str, op_type: str, opset: int, constraint: str, dtype: ir.DataType) -> ir.DataType:
    """`dtype` where the opset allows it and ONNX Runtime's CPU kernels take it, else the next that holds all its values.

    float16 needs no kernel: ONNX Runtime widens it by itself.

    Raises:
        Unrunnable: there is none.
    """
    allowed, taken = _schema_types(domain, op_type, opset).get(constraint), _kernel_types(domain, op_type, opset).get(constraint)

    def runs(candidate: ir.DataType) -> bool:
        name = runtime_name(candidate)
        return (not allowed or name in allowed) and (not taken or name in taken or candidate == ir.DataType.FLOAT16)

    if dtype not in WIDER or runs(dtype):
        return dtype
    for wider in WIDER[dtype]:
        if runs(ir.DataType[wider]):
            return ir.DataType[wider]
    raise Unrunnable(f"ONNX Runtime has no kernel of {op_type} for {TORCH[dtype]}: convert the model, or this part of it, to another dtype")


@cache
def widening(op_type: str, opset: int, given: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """For inputs of these dtypes (None where there is none): the dtype to cast each to, and the one to cast each output back to.

    Both are empty when ONNX Runtime has a kernel for the inputs as they are.

    Raises:
        Unrunnable: it has none, nor in a wider dtype; or the opset has no such operator.
    """
    if op_type in SUBGRAPHS:
        return (), ()
    ins, outs = type_constraints("", op_type, opset)
    of_input = [ins[min(i, len(ins) - 1)] for i in range(len(given))]
    wanted = {c: runnable("", op_type, opset, c, dtype) for c, dtype in zip(of_input, given, strict=True) if dtype is not None}
    before = {c: dtype for c, dtype in zip(of_input, given, strict=True) if dtype is not None}
    changed = {c: dtype for c, dtype in before.items() if wanted[c] != dtype}
    if not changed:
        return (), ()
    wide = tuple(wanted[c] if c in changed and dtype is not None else None for c, dtype in zip(of_input, given, strict=True))
    return wide, tuple(changed.get(c) for c in outs)


def runtime_name(dtype: ir.DataType) -> str:
    """The type as ONNX Runtime spells it in its kernel definitions."""
    return f"tensor({RUNTIME_NAMES.get(dtype.name, dtype.name.lower())})"


@cache
def type_constraints(domain: str, op_type: str, opset: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the type constraints of each input and output; variadic ones count once.

    Raises:
        Unrunnable: the opset has no such operator.
    """
    try:
        schema = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError as error:
        raise Unrunnable(f"opset {opset} has no operator {op_type}") from error
    return tuple(p.type_str for p in schema.inputs), tuple(p.type_str for p in schema.outputs)


@cache
def _schema_types(domain: str, op_type: str, opset: int) -> dict[str, frozenset[str]]:
    schema = onnx.defs.get_schema(op_type, opset, domain)
    return {constraint.type_param_str: frozenset(constraint.allowed_type_strs) for constraint in schema.type_constraints}


@cache
def _kernel_types(domain: str, op_type: str, opset: int) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    since = onnx.defs.get_schema(op_type, opset, domain).since_version
    for kernel in _kernels().get((domain, op_type), ()):
        first, last = kernel.version_range
        if first <= since <= last:
            for constraint, types in kernel.type_constraints.items():
                found.setdefault(constraint, set()).update(types)
    return {constraint: frozenset(types) for constraint, types in found.items()}


@cache
def _kernels() -> dict[tuple[str, str], list[Any]]:
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    found: dict[tuple[str, str], list[Any]] = {}
    for kernel in get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            found.setdefault((kernel.domain, kernel.op_name), []).append(kernel)
    return found
