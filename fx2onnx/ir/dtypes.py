"""The ONNX dtypes of torch dtypes, and the errors for dtypes that ONNX Runtime does not compute with."""

from __future__ import annotations

from functools import cache

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype, to_torch_dtype

BOOL, UINT8, UINT16, UINT32, UINT64 = ir.DataType.BOOL, ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64
INT8, INT16, INT32, INT64 = ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64
FLOAT16, BFLOAT16, FLOAT, DOUBLE = ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE
HALVES = (FLOAT16, BFLOAT16)
FLOATS = (*HALVES, FLOAT, DOUBLE)
COMPUTED = (BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, *FLOATS)
TORCH = {dtype: to_torch_dtype(dtype) for dtype in COMPUTED}


class NoKernel(TypeError):
    """ONNX Runtime has no kernel for this operator in this dtype, nor in a wider one that contains its values."""


@cache
def onnx_dtype(dtype: torch.dtype | ir.DataType) -> ir.DataType:
    """Return the ONNX dtype.

    Raises:
        NoKernel: ONNX Runtime does not compute with this dtype (complex numbers, quantised types).
    """
    if isinstance(dtype, ir.DataType):
        return dtype
    if dtype not in TORCH.values():
        raise NoKernel(f"ONNX Runtime does not compute with {dtype}")
    return from_torch_dtype(dtype)
