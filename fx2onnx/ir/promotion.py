"""The dtype that torch computes in, given the operands."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx_ir as ir
import sympy
import torch

from .dtypes import TORCH, NoKernel, onnx_dtype
from .tensor import Tensor

Kind = tuple[ir.DataType | type, bool]


def common_dtype(*operands: Any) -> ir.DataType:
    """Return the dtype that torch computes in: numbers and tensors without axes have a lower priority.

    Raises:
        NoKernel: an operand has a dtype that ONNX Runtime does not compute with, such as a complex weight.
    """
    return _result_dtype(*map(_kind, operands))


def _kind(operand: Any) -> Kind:
    """Return what determines the promotion: the dtype and whether there are no axes, or the Python type."""
    if isinstance(operand, Tensor):
        return operand.dtype, operand.known_sizes == ()
    if isinstance(operand, sympy.Basic):
        return (bool if operand.is_Boolean or operand.is_Relational else int if operand.is_integer else float), True
    return type(operand), True


@cache
def _result_dtype(*operands: Kind) -> ir.DataType:
    examples = [_example(*operand) for operand in operands]
    dtype = torch.result_type(examples[0], examples[-1])
    for example in examples[1:-1]:
        dtype = torch.promote_types(dtype, torch.result_type(examples[0], example))
    return onnx_dtype(dtype)


def _example(kind: ir.DataType | type, scalar: bool) -> Any:
    if isinstance(kind, type):
        return kind(1)
    if kind not in TORCH:
        raise NoKernel(f"ONNX Runtime does not compute with {kind.name}")
    return torch.empty(() if scalar else (1,), dtype=TORCH[kind], device="cpu")
