"""Floats on a grid of whole numbers: torch's own quantised types, and the pair of operators that quantisers of programs insert."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx_ir as ir
import torch

from ..compat import aten
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE, FLOAT, INT8, INT16, INT32, UINT8, UINT16, onnx_dtype
from ..ir.graph import Graph, Tensor
from ..ir.quantized import STORED, Quantized
from ..ir.tensor import Operand
from ..translate.registry import takes_quantized, translates

NARROW = (INT8, UINT8)
SHORT = (INT16, UINT16)
SHORT_SINCE = 21
LEAST, MOST = -(2.0**31), 2147483520.0  # where torch cuts off the number of steps, as float32 has it


@takes_quantized
@translates(aten.quantize_per_tensor.default, aten.quantize_per_tensor.tensor_qparams)
def quantize_per_tensor(g: Graph, x: Tensor, scale: Operand, zero_point: Operand, dtype: torch.dtype) -> Quantized:
    """quantize_per_tensor(x, scale, zero_point, dtype) → QuantizeLinear of x · (1 / scale), with the zero point as torch adds it."""
    stored = _check_storage_dtype(dtype)
    step, zero = g.scalar(scale, FLOAT), g.scalar(zero_point, stored)
    if not adds_zero_point_before_rounding():
        steps = g.Mul(x, inverse(g, step))
        least = g.Where(
            g.Less(g.cast(zero, FLOAT), 0), g.const(LEAST, FLOAT), g.const(-math.inf, FLOAT)
        )  # torch adds in int32, which wraps
        return Quantized(round_to_grid(g, g.Where(g.GreaterOrEqual(steps, least), steps, g.const(MOST, FLOAT)), zero), step, zero)
    wide = g.Add(g.Mul(g.cast(x, DOUBLE), g.cast(inverse(g, step), DOUBLE)), g.cast(zero, DOUBLE))
    return Quantized(_quantize_floats(g, g.cast(wide, FLOAT), stored, torch.iinfo(STORED[dtype]).max), step, zero)


@takes_quantized
@translates(aten.quantize_per_channel.default)
def quantize_per_channel(g: Graph, x: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: torch.dtype) -> Quantized:
    """quantize_per_channel(x, scales, zero_points, axis, dtype) → QuantizeLinear of x · (1 / scale), with zero_point of each row."""
    stored = _check_storage_dtype(dtype)
    steps, zeros = g.cast(scales, FLOAT), g.cast(zero_points, stored)
    along = [-1, *[1] * (x.rank - axis - 1)]
    wide = g.Mul(x, g.Reshape(inverse(g, steps), along))
    offset = g.Reshape(g.cast(zeros, FLOAT), along)
    if not adds_zero_point_before_rounding():
        return Quantized(round_to_grid(g, g.Where(g.IsNaN(wide), g.Neg(offset), wide), zeros, axis), steps, zeros, axis)
    return Quantized(_quantize_floats(g, g.Add(wide, offset), stored, 0), steps, zeros, axis)


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
    """quantize_per_tensor(x, scale, zero_point, min, max, dtype) → QuantizeLinear, and Clip to a range narrower than the type's.

    Runtimes look for this pair, so it stays one though QuantizeLinear divides by the scale, and torch multiplies by its inverse: a value
    half way between two steps may go to the other one. A weight is exact, since its whole numbers are computed here.
    """
    kind = _whole(g, dtype)
    weight = grid_of_weight(g, x, scale, zero_point, Range(quant_min, quant_max, dtype))
    if weight is not None:
        return weight
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


@cache
def adds_zero_point_before_rounding() -> bool:
    """Return whether torch's own quantised types are rounded with their zero point, as in torch 2.13, or before it is added."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are deprecated
        probe = torch.quantize_per_tensor(torch.tensor([-21.35], device="cpu"), 0.7, -4, torch.qint8)
    return int(probe.int_repr()) == -34  # -21.35 · (1 / 0.7) is just below -30.5, and -34.5 with the zero point


@dataclass(frozen=True)
class Range:
    """The whole numbers from `least` to `most`, in the type that they are stored in."""

    least: Any
    most: Any
    dtype: torch.dtype


def grid_of_weight(g: Graph, x: Tensor, scale: Operand, zero_point: Operand, to: Range, axis: int | None = None) -> Tensor | None:
    """Return the whole numbers of a weight, computed here as torch does; None for what is no weight, or known in a call only."""
    weight, step, zero = (read_constant(g, value) for value in (x, scale, zero_point))
    if weight is None or step is None or zero is None or not isinstance(to.least, int) or not isinstance(to.most, int):
        return None
    along = [-1, *[1] * (weight.dim() - axis - 1)] if axis is not None else []
    steps = weight.to(torch.promote_types(weight.dtype, torch.float32)) * (1 / step.float()).reshape(along)
    if not bool(steps.isfinite().all()):
        return None
    values = (torch.round(steps) + zero.reshape(along)).clamp(to.least, to.most).to(to.dtype)
    return g.initializer(g.shared.names.unique(f"{x.name}/quantized"), values)


def read_constant(g: Graph, value: Operand) -> torch.Tensor | None:
    """Return what is known of a value before any call: a number, a constant, or a weight that no call changes."""
    if isinstance(value, (int, float)):
        return torch.tensor(value)
    return value.weight if isinstance(value, Tensor) and value not in g.shared.may_change else None


def inverse(g: Graph, scale: Tensor) -> Tensor:
    """Return 1 / scale in float32, which torch multiplies with; not as `Div(1, scale)`: ONNX Runtime makes x · (1 / scale) x / scale."""
    settled = read_constant(g, scale)
    return g.Mul(g.Div(g.const(2, FLOAT), scale), 0.5) if settled is None else g.const(1 / settled.float(), FLOAT)


def round_to_grid(g: Graph, steps: Tensor, zero_point: Tensor, axis: int | None = None) -> Tensor:
    """Return the whole numbers next to these numbers of steps, with the zero point added, cut off at the ends of its type."""
    ones = g.const(1, FLOAT) if axis is None else g.Expand(g.const([1], FLOAT), g.shape(zero_point))
    return g.QuantizeLinear(steps, ones, zero_point, **({} if axis is None else {"axis": axis}))


def _quantize_floats(g: Graph, x: Tensor, dtype: ir.DataType, of_nan: int) -> Tensor:
    """Return whole numbers next to these floats, cut off at the ends of a type."""
    return g.QuantizeLinear(g.Where(g.IsNaN(x), g.const(of_nan, FLOAT), x), g.const(1, FLOAT), g.const(0, dtype))


def _check_storage_dtype(dtype: torch.dtype) -> ir.DataType:
    if dtype not in STORED:
        raise Untranslated(f"ONNX Runtime has no kernels for {dtype}: use {' or '.join(map(str, STORED))}")
    return onnx_dtype(STORED[dtype])


def _whole(g: Graph, dtype: torch.dtype) -> ir.DataType:
    kind = onnx_dtype(dtype)
    if kind not in (*NARROW, *(SHORT if g.opset >= SHORT_SINCE else ())):
        raise Untranslated(f"QuantizeLinear of opset {g.opset} does not support {dtype}")
    return kind
