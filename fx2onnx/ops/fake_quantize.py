"""Rounding of floats to a quantisation grid, as in quantisation-aware training. Quantised dtypes are in quantized.py."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..ir.dtypes import DOUBLE, FLOAT, FLOATS, INT8, UINT8
from ..ir.graph import Graph, Tensor
from ..ir.quantized import Quantized
from ..ir.tensor import Operand
from ..translate.registry import translates
from .quantized import Range, dequantize, grid_of_weight, inverse, read_constant, round_to_grid

FAR_SIZE = 2.0**63  # torch's int64 number of steps overflows to its minimum from here on


@dataclass(frozen=True)
class Grid:
    """The grid of a fake quantisation: scale, zero point and bounds; with an axis, a scale for each row."""

    scale: Operand
    zero_point: Operand
    least: int
    most: int
    axis: int | None = None


@translates(aten.fake_quantize_per_tensor_affine.default, aten.fake_quantize_per_tensor_affine.tensor_qparams)
def fake_quantize(g: Graph, x: Tensor, scale: Operand, zero_point: Operand, quant_min: int, quant_max: int) -> Tensor:
    """fake_quantize_per_tensor_affine(x, scale, zero_point, min, max) → QuantizeLinear of x · (1 / scale), DequantizeLinear.

    A weight is stored as integers. A grid outside of 8 bits becomes Mul, Round, Add, Clip, Sub, Mul.
    """
    return _quantize_on_grid(g, x, Grid(scale, zero_point, quant_min, quant_max))


@translates(aten.fake_quantize_per_channel_affine.default)
def fake_quantize_channels(g: Graph, x: Tensor, scale: Operand, zero_point: Operand, axis: int, quant_min: int, quant_max: int) -> Tensor:
    """fake_quantize_per_channel_affine(x, scale, zero_point, axis, min, max) → the same with a scale for each row."""
    return _quantize_on_grid(g, x, Grid(scale, zero_point, quant_min, quant_max, axis % x.rank))


def _quantize_on_grid(g: Graph, x: Tensor, grid: Grid) -> Tensor:
    kind = _find_storage_dtype(x, grid)
    if kind is None:
        return _quantize_in_floats(g, x, grid)
    step, zero = (_make_parameter(g, value, grid, dtype) for value, dtype in ((grid.scale, FLOAT), (grid.zero_point, kind)))
    stored = torch.int8 if kind == INT8 else torch.uint8
    weight = grid_of_weight(g, x, grid.scale, grid.zero_point, Range(grid.least, grid.most, stored), grid.axis)
    values = weight if weight is not None else _whole_numbers(g, x, step, zero, grid)
    return dequantize(g, Quantized(g.set_sizes(values, x.sizes), step, zero, grid.axis))


def _whole_numbers(g: Graph, x: Tensor, step: Tensor, zero: Tensor, grid: Grid) -> Tensor:
    made = round_to_grid(g, _steps(g, x, step, grid), zero, grid.axis)
    ends = torch.iinfo(torch.int8 if zero.dtype == INT8 else torch.uint8)
    if (grid.least, grid.most) == (ends.min, ends.max):
        return made
    return g.Clip(made, g.const(grid.least, zero.dtype), g.const(grid.most, zero.dtype))


def _quantize_in_floats(g: Graph, x: Tensor, grid: Grid) -> Tensor:
    """Return the rounded floats without integers: for float64, and for a grid outside of 8 bits."""
    wide = DOUBLE if x.dtype == DOUBLE else FLOAT
    step, zero = (_make_parameter(g, value, grid, FLOAT) for value in (grid.scale, grid.zero_point))
    steps, offset = _steps(g, x, step, grid), g.cast(_along(g, x, zero, grid), wide)
    is_float = isinstance(grid.zero_point, Tensor) and grid.zero_point.dtype in FLOATS
    moved = g.Round(g.Add(steps, offset)) if is_float else g.Add(g.Round(steps), offset)
    ends = (g.const(end, wide) for end in (grid.least, grid.most))
    result = FLOAT if grid.axis is None else wide  # torch multiplies by a single scale in float32, also for float64
    return g.Mul(g.cast(g.Sub(g.Clip(moved, *ends), offset), result), g.cast(_along(g, x, step, grid), result))


def _steps(g: Graph, x: Tensor, step: Tensor, grid: Grid) -> Tensor:
    """Return how many steps each element is from 0, cut off like torch's integers."""
    wide = DOUBLE if x.dtype == DOUBLE else FLOAT
    steps = g.Mul(g.cast(x, wide), g.cast(_along(g, x, inverse(g, step), grid), wide))
    is_number = g.Not(g.IsNaN(steps)) if grid.axis is None else g.Less(steps, FAR_SIZE)
    return g.set_sizes(g.Where(is_number, steps, g.const(-math.inf, wide)), x.sizes)


def _find_storage_dtype(x: Tensor, grid: Grid) -> ir.DataType | None:
    """Return the 8-bit dtype that contains the whole grid; None if it does not exist, or the grid does not consist of integers."""
    if x.dtype == DOUBLE or (isinstance(grid.zero_point, Tensor) and grid.zero_point.dtype in FLOATS):
        return None
    return next((kind for kind, least, most in ((INT8, -128, 127), (UINT8, 0, 255)) if least <= grid.least and grid.most <= most), None)


def _make_parameter(g: Graph, value: Operand, grid: Grid, dtype: ir.DataType) -> Tensor:
    """Return a scale or zero point in this dtype: a constant if it is known, without axes if there is only one."""
    settled = read_constant(g, value)
    if settled is not None:
        return g.const(settled.detach().reshape([-1] if grid.axis is not None else []), dtype)
    return g.cast(value, dtype) if grid.axis is not None else g.scalar(value, dtype)


def _along(g: Graph, x: Tensor, value: Tensor, grid: Grid) -> Tensor:
    return value if grid.axis is None else g.Reshape(value, [-1, *[1] * (x.rank - grid.axis - 1)])
