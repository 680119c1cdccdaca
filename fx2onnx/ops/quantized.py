"""Floats on a grid of whole numbers: torch's own quantised types, and the pair of operators that quantisers of programs insert."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from ..build.dtypes import DOUBLE, FLOAT, INT8, INT16, INT32, UINT8, UINT16, onnx_dtype
from ..build.graph import Graph, Tensor
from ..build.quantized import STORED, Quantized
from ..build.tensor import Operand
from ..compat import aten
from ..errors import Untranslated
from ..translate.registry import takes_quantized, translates

NARROW = (INT8, UINT8)
SHORT = (INT16, UINT16)
SHORT_SINCE = 21


@takes_quantized
@translates(aten.quantize_per_tensor.default, aten.quantize_per_tensor.tensor_qparams)
def quantize_per_tensor(g: Graph, x: Tensor, scale: Operand, zero_point: Operand, dtype: torch.dtype) -> Quantized:
    """quantize_per_tensor(x, scale, zero_point, dtype) → QuantizeLinear of x · (1 / scale) + zero_point, rounded once before it."""
    stored = _stored(dtype)
    step, zero = g.scalar(scale, FLOAT), g.scalar(zero_point, stored)
    wide = g.Add(g.Mul(g.cast(x, DOUBLE), g.cast(_inverse(g, step), DOUBLE)), g.cast(zero, DOUBLE))
    return Quantized(_on_grid(g, g.cast(wide, FLOAT), stored, torch.iinfo(STORED[dtype]).max), step, zero)


@takes_quantized
@translates(aten.quantize_per_channel.default)
def quantize_per_channel(g: Graph, x: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: torch.dtype) -> Quantized:
    """quantize_per_channel(x, scales, zero_points, axis, dtype) → QuantizeLinear of x · (1 / scale) + zero_point of each row."""
    stored = _stored(dtype)
    steps, zeros = g.cast(scales, FLOAT), g.cast(zero_points, stored)
    along = [-1, *[1] * (x.rank - axis - 1)]
    wide = g.Add(g.Mul(x, g.Reshape(_inverse(g, steps), along)), g.Reshape(g.cast(zeros, FLOAT), along))
    return Quantized(_on_grid(g, wide, stored, 0), steps, zeros, axis)


@takes_quantized
@translates(aten.dequantize.self)
def dequantize(g: Graph, x: Quantized | Tensor) -> Tensor:
    """dequantize(x) → DequantizeLinear; of a weight (values − zero_point) · scale; a tensor of floats as it is."""
    if isinstance(x, Tensor):
        return x
    if x.values.weight is not None:  # ONNX Runtime rounds what is multiplied with a DequantizeLinear of a weight to int8
        along = [] if x.axis is None else [-1, *[1] * (x.values.rank - x.axis - 1)]
        scale, zero_point = (g.Reshape(g.cast(part, FLOAT), along) for part in (x.scale, x.zero_point))
        return g.Mul(g.Sub(g.cast(x.values, FLOAT), zero_point), scale)
    axis = {} if x.axis is None else {"axis": x.axis}
    return g.DequantizeLinear(x.values, x.scale, x.zero_point, **axis)


@takes_quantized
@translates(aten.int_repr.default)
def int_repr(g: Graph, x: Quantized) -> Tensor:
    """int_repr(x) → the whole numbers of a quantised tensor."""
    return x.values


@translates(
    "quantized_decomposed.quantize_per_tensor.default", "quantized_decomposed.quantize_per_tensor.tensor",
    "quantized_decomposed.quantize_per_tensor.tensor2",
)  # fmt: skip
def quantize_to_range(
    g: Graph, x: Tensor, scale: Operand, zero_point: Operand, quant_min: Operand, quant_max: Operand, dtype: torch.dtype
) -> Tensor:
    """quantize_per_tensor(x, scale, zero_point, min, max, dtype) → QuantizeLinear, and Clip to a range narrower than the type's."""
    kind = _whole(g, dtype)
    made = g.QuantizeLinear(g.cast(x, FLOAT), g.scalar(scale, FLOAT), g.scalar(zero_point, kind))
    if (quant_min, quant_max) == (torch.iinfo(dtype).min, torch.iinfo(dtype).max):
        return made
    return g.Clip(made, g.scalar(quant_min, kind), g.scalar(quant_max, kind))


@translates(
    "quantized_decomposed.dequantize_per_tensor.default", "quantized_decomposed.dequantize_per_tensor.tensor",
    "quantized_decomposed.dequantize_per_tensor.tensor2",
)  # fmt: skip
def dequantize_from_range(
    g: Graph, x: Tensor, scale: Operand, zero_point: Operand, quant_min: Operand, quant_max: Operand, dtype: torch.dtype, **_: Any
) -> Tensor:
    """dequantize_per_tensor(x, scale, zero_point, min, max, dtype, out_dtype) → DequantizeLinear."""
    kind = INT32 if (dtype, zero_point) == (torch.int32, 0) else _whole(g, dtype)
    return g.DequantizeLinear(x, g.scalar(scale, FLOAT), None if kind == INT32 else g.scalar(zero_point, kind))


def _inverse(g: Graph, scale: Tensor) -> Tensor:
    """Return 1 / scale in float32, which torch multiplies with."""
    return g.Div(g.const(1, FLOAT), scale)


def _on_grid(g: Graph, x: Tensor, dtype: ir.DataType, of_nan: int) -> Tensor:
    """Return whole numbers next to these floats, cut off at the ends of a type."""
    return g.QuantizeLinear(g.Where(g.IsNaN(x), g.const(of_nan, FLOAT), x), g.const(1, FLOAT), g.const(0, dtype))


def _stored(dtype: torch.dtype) -> ir.DataType:
    if dtype not in STORED:
        raise Untranslated(f"{dtype} is no quantised type that ONNX Runtime has kernels for: {' and '.join(map(str, STORED))} are")
    return onnx_dtype(STORED[dtype])


def _whole(g: Graph, dtype: torch.dtype) -> ir.DataType:
    kind = onnx_dtype(dtype)
    if kind not in (*NARROW, *(SHORT if g.opset >= SHORT_SINCE else ())):
        raise Untranslated(f"QuantizeLinear of opset {g.opset} knows no {dtype}")
    return kind
