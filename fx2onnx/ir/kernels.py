"""The dtypes of ONNX Runtime's CPU kernels, from a stored table, and wider dtypes where a kernel is missing."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib.resources import files

import onnx_ir as ir

from .dtypes import BFLOAT16, BOOL, DOUBLE, FLOAT, FLOAT16, INT8, INT16, INT32, INT64, TORCH, UINT8, UINT16, UINT32, UINT64, NoKernel
from .schemas import allowed_types, schema_of, type_constraints, type_name

Dtypes = tuple[ir.DataType | None, ...]
Kernel = tuple[int, int, dict[str, frozenset[str]]]
WIDER = {
    BOOL: (UINT8, INT32, INT64, FLOAT),
    INT8: (INT32, INT64, FLOAT),
    INT16: (INT32, INT64, FLOAT),
    INT32: (INT64, DOUBLE),
    INT64: (),
    UINT8: (INT32, INT64, FLOAT),
    UINT16: (INT32, INT64, FLOAT),
    UINT32: (INT64, DOUBLE),
    UINT64: (),
    FLOAT16: (FLOAT,),
    BFLOAT16: (FLOAT,),
    FLOAT: (DOUBLE,),
    DOUBLE: (),
}
SUBGRAPHS = ("If", "Loop", "Scan")
NEWEST = 2**31 - 1


@cache
def runnable(op_type: str, opset: int, constraint: str, dtype: ir.DataType) -> ir.DataType:
    """Return `dtype` if the opset and ONNX Runtime's CPU kernels support it, else the next one that contains all its values.

    float16 needs no kernel, because ONNX Runtime widens it itself.

    Raises:
        NoKernel: no dtype is supported.
    """
    allowed, taken = allowed_types(op_type, opset).get(constraint), _kernel_types(op_type, opset).get(constraint)

    def runs(candidate: ir.DataType) -> bool:
        name = type_name(candidate)
        return (not allowed or name in allowed) and (not taken or name in taken or candidate == ir.DataType.FLOAT16)

    if dtype not in WIDER or runs(dtype):
        return dtype
    for wider in WIDER[dtype]:
        if runs(wider):
            return wider
    raise NoKernel(f"ONNX Runtime has no {op_type} kernel for {TORCH[dtype]}: convert the model, or this part of it, to another dtype")


@cache
def widening(op_type: str, opset: int, given: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Return the dtype to cast each input to, and the one to cast each output back to, for inputs of these dtypes.

    None means that an input or output is not cast. Both are empty if ONNX Runtime has a kernel for these dtypes.

    Raises:
        NoKernel: ONNX Runtime lacks a kernel, even in a wider dtype.
        Untranslated: the opset has no such operator.
    """
    if op_type in SUBGRAPHS:
        return (), ()
    ins, outs = type_constraints(op_type, opset)
    of_input = [ins[min(i, len(ins) - 1)] for i in range(len(given))]
    wanted = {c: runnable(op_type, opset, c, dtype) for c, dtype in zip(of_input, given, strict=True) if dtype is not None}
    before = {c: dtype for c, dtype in zip(of_input, given, strict=True) if dtype is not None}
    changed = {c: dtype for c, dtype in before.items() if wanted[c] != dtype}
    if not changed:
        return (), ()
    wide = tuple(wanted[c] if c in changed and dtype is not None else None for c, dtype in zip(of_input, given, strict=True))
    return wide, tuple(changed.get(c) for c in outs)


@cache
def _kernel_types(op_type: str, opset: int) -> dict[str, frozenset[str]]:
    """Return the dtypes of all kernels of an operator, by type constraint."""
    found: dict[str, frozenset[str]] = defaultdict(frozenset)
    since = schema_of(op_type, opset).since_version
    for first, last, constraints in _kernels().get(op_type, ()):
        if first <= since <= last:
            for constraint, types in constraints.items():
                found[constraint] |= types
    return found


@cache
def _kernels() -> dict[str, list[Kernel]]:
    """Return the kernels that tools/cpu_kernels.py lists: `Add 14- T=double,float,int32`."""
    found: dict[str, list[Kernel]] = defaultdict(list)
    for line in files(__package__).joinpath("cpu_kernels.txt").read_text(encoding="utf-8").splitlines()[1:]:
        op_type, versions, *constraints = line.split()
        first, last = versions.split("-")
        found[op_type].append((int(first), int(last or NEWEST), dict(map(_constraint, constraints))))
    return found


def _constraint(text: str) -> tuple[str, frozenset[str]]:
    name, types = text.split("=")
    return name, frozenset(kind if kind.endswith(")") else f"tensor({kind})" for kind in types.split(","))
