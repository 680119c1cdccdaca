"""Quantised values: torch's quantised dtypes, and the pair of operators that PT2E quantisers insert."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE, FLOAT, INT8, INT16, INT32, UINT8, UINT16, onnx_dtype
from ..ir.graph import Graph, Tensor
from ..ir.quantized import STORED, Quantized
from ..ir.tensor import Operand
from ..translate.registry import takes_quantized, translates

NARROW = (INT8, UINT8)
SHORT = (INT16, UINT16)
SHORT_SINCE = 21
LEAST, MOST = -2147483520.0, 2147483520.0  # the float32 numbers next to the ends of int32
HALF_BELOW = -21.35  # times 1 / 0.7 just below -30.5, and exactly -34.5 with the zero point -4


@takes_quantized
@translates(aten.quantize_per_tensor.default, aten.quantize_per_tensor.tensor_qparams)
def quantize_per_tensor(g: Graph, x: Tensor, scale: Operand, zero_point: Operand, dtype: torch.dtype) -> Quantized:
    """quantize_per_tensor(x, scale, zero_point, dtype) → QuantizeLinear of x · (1 / scale), with the zero point added as in torch."""
    stored = _check_storage_dtype(dtype)
    step, zero = g.scalar(scale, FLOAT), g.scalar(zero_point, stored)
    rounding = probe_rounding()
    if not rounding.adds_zero_point_first:
        steps = g.Mul(x, inverse(g, step))
        least = g.const(-math.inf, FLOAT)
        if rounding.wraps:
            least = g.Where(g.Less(g.cast(zero, FLOAT), 0), g.const(LEAST, FLOAT), least)
        return Quantized(round_to_grid(g, g.Where(g.GreaterOrEqual(steps, least), steps, g.const(MOST, FLOAT)), zero), step, zero)
    wide = g.Add(g.Mul(g.cast(x, DOUBLE), g.cast(inverse(g, step), DOUBLE)), g.cast(zero, DOUBLE))
    return Quantized(_quantize_floats(g, g.cast(wide, FLOAT), stored, torch.iinfo(STORED[dtype]).max), step, zero)


@takes_quantized
@translates(aten.quantize_per_channel.default)
def quantize_per_channel(g: Graph, x: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: torch.dtype) -> Quantized:
    """quantize_per_channel(x, scales, zero_points, axis, dtype) → QuantizeLinear of x · (1 / scale), with a zero point for each row."""
    stored = _check_storage_dtype(dtype)
    steps, zeros = g.cast(scales, FLOAT), g.cast(zero_points, stored)
    along = [-1, *[1] * (x.rank - axis - 1)]
    wide = g.Mul(x, g.Reshape(inverse(g, steps), along))
    offset = g.Reshape(g.cast(zeros, FLOAT), along)
    if not probe_rounding().adds_zero_point_first:
        return Quantized(round_to_grid(g, g.Where(g.IsNaN(wide), g.Neg(offset), wide), zeros, axis), steps, zeros, axis)
    return Quantized(_quantize_floats(g, g.Add(wide, offset), stored, 0), steps, zeros, axis)


@takes_quantized
@translates(aten.dequantize.self)
def dequantize(g: Graph, x: Quantized | Tensor) -> Tensor:
    """dequantize(x) → DequantizeLinear; for a weight (values − zero_point) · scale; nothing for a tensor of floats."""
    if isinstance(x, Tensor):
        return x
    if x.values.weight is not None:  # ONNX Runtime rounds the other factor of a product with DequantizeLinear(weight) to int8
        along = [] if x.axis is None else [-1, *[1] * (x.values.rank - x.axis - 1)]
        scale, zero_point = (g.Reshape(g.cast(part, FLOAT), along) for part in (x.scale, x.zero_point))
        return g.Mul(g.Sub(g.cast(x.values, FLOAT), zero_point), scale)
    axis = {} if x.axis is None else {"axis": x.axis}
    return g.DequantizeLinear(x.values, x.scale, x.zero_point, **axis)


@takes_quantized
@translates(aten.int_repr.default)
def int_repr(g: Graph, x: Quantized) -> Tensor:
    """int_repr(x) → the integers of a quantised tensor."""
    return x.values


@translates(
    "quantized_decomposed.quantize_per_tensor.default", "quantized_decomposed.quantize_per_tensor.tensor",
    "quantized_decomposed.quantize_per_tensor.tensor2",
)  # fmt: skip
def quantize_to_range(
    g: Graph, x: Tensor, scale: Operand, zero_point: Operand, quant_min: Operand, quant_max: Operand, dtype: torch.dtype
) -> Tensor:
    """quantize_per_tensor(x, scale, zero_point, min, max, dtype) → QuantizeLinear, and Clip if the range is narrower than the dtype's.

    Runtimes match this pair, so it is kept although QuantizeLinear divides by the scale and torch multiplies by its inverse. A value
    halfway between two steps may therefore be rounded differently. A weight is exact, because its integers are computed during the export.
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


@dataclass(frozen=True)
class Rounding:
    """How torch rounds to its quantised dtypes, which differs between releases.

    Attributes:
        adds_zero_point_first: whether torch rounds the sum with the zero point, as in torch 2.13.
        wraps: whether torch adds a negative zero point in int32, where a sum below the range becomes the largest integer.
    """

    adds_zero_point_first: bool
    wraps: bool


@cache
def probe_rounding() -> Rounding:
    """Return how the installed torch rounds, from its results at half a step and at -inf."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these dtypes are deprecated
        probe = torch.quantize_per_tensor(torch.tensor([HALF_BELOW, -math.inf], device="cpu"), 0.7, -4, torch.qint8)
    of_half, of_minus_inf = probe.int_repr().tolist()
    return Rounding(adds_zero_point_first=of_half == -34, wraps=of_minus_inf > 0)


@dataclass(frozen=True)
class Range:
    """The integers from `least` to `most`, in the dtype that they are stored in."""

    least: Any
    most: Any
    dtype: torch.dtype


def grid_of_weight(g: Graph, x: Tensor, scale: Operand, zero_point: Operand, to: Range, axis: int | None = None) -> Tensor | None:
    """Return the integers of a weight, computed as in torch; None if it is not a weight, or is known only in a call."""
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
    """Return a value that is known before any call: a number, a constant, or a weight that no call changes."""
    if isinstance(value, (int, float)):
        return torch.tensor(value)
    return value.weight if isinstance(value, Tensor) and value not in g.shared.may_change else None


def inverse(g: Graph, scale: Tensor) -> Tensor:
    """Return 1 / scale in float32, which torch multiplies by, but not as `Div(1, scale)`: ONNX Runtime fuses x · (1 / scale) to x /
    scale."""
    settled = read_constant(g, scale)
    return g.Mul(g.Div(g.const(2, FLOAT), scale), 0.5) if settled is None else g.const(1 / settled.float(), FLOAT)


def round_to_grid(g: Graph, steps: Tensor, zero_point: Tensor, axis: int | None = None) -> Tensor:
    """Return the numbers of steps rounded, with the zero point added, and clamped to its dtype."""
    ones = g.const(1, FLOAT) if axis is None else g.Expand(g.const([1], FLOAT), g.shape(zero_point))
    return g.QuantizeLinear(steps, ones, zero_point, **({} if axis is None else {"axis": axis}))


def _quantize_floats(g: Graph, x: Tensor, dtype: ir.DataType, of_nan: int) -> Tensor:
    """Return floats rounded to integers, and clamped to a dtype."""
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
