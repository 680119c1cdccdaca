"""Reinterpreting numbers as another dtype of the same width: `view(dtype)`. Below opset 26, which has BitCast, bits are computed."""

from __future__ import annotations

import math
from typing import NamedTuple

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import BFLOAT16, BOOL, DOUBLE, FLOAT, FLOAT16, FLOATS, INT8, INT64, UINT8
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .float_parts import parts_of, times_power
from .pointwise import signbit

BITCAST_SINCE = 26


class Layout(NamedTuple):
    """The layout of a float: a sign, a biased exponent, and the bits of the fraction."""

    fraction: int
    bias: int

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return (2 * self.bias + 1) << self.fraction

    @property
    def sign(self) -> int:
        """The sign bit, as a number in int64's two's complement."""
        bit = (2 * self.bias + 2) << self.fraction
        return bit if bit < 2**63 else -bit


LAYOUTS = {FLOAT16: Layout(10, 15), BFLOAT16: Layout(7, 127), FLOAT: Layout(23, 127), DOUBLE: Layout(52, 1023)}


@translates(aten.view.dtype)
def view_as_dtype(g: Graph, x: Tensor, dtype: torch.dtype) -> Tensor:
    """view(x, dtype) → Cast of integers, BitCast of floats from opset 26 on, arithmetic before; any NaN then has the bits of torch.nan."""
    given, wanted = x.dtype, g.dtype
    if wanted == given:
        return x
    if not _fit(given, wanted):
        raise Untranslated(f"ONNX cannot reinterpret the bits of {given.name} as {wanted.name}")
    if given not in FLOATS and wanted not in FLOATS:
        return g.cast(x, wanted)
    if g.opset >= BITCAST_SINCE:
        return g.BitCast(x, to=wanted)
    if wanted not in FLOATS:
        return g.cast(_bits_of(g, x), wanted)
    bits = _bits_of(g, x) if given in FLOATS else g.cast(x, INT64)
    return g.cast(_float_of(g, bits, LAYOUTS[wanted]), wanted)


def _fit(given: ir.DataType, wanted: ir.DataType) -> bool:
    """Return whether both dtypes have the same width; the bits of a boolean are known, but other bits may be no boolean."""
    return wanted in (INT8, UINT8) if given == BOOL else wanted != BOOL and given.bitwidth == wanted.bitwidth


def _bits_of(g: Graph, x: Tensor) -> Tensor:
    """Return the bits of floats in int64: the exponent, and the number divided by the smallest step for this exponent."""
    layout, size = LAYOUTS[x.dtype], g.cast(g.Abs(x), DOUBLE)
    least = 2 - layout.bias
    odd = g.Or(g.IsNaN(size), g.IsInf(size))
    finite = g.Where(odd, g.const(0, DOUBLE), size)
    exponent = g.Where(g.Equal(finite, 0), g.const(least, DOUBLE), g.Max(parts_of(g, finite).exponent, least))
    steps = times_power(g, finite, g.Add(g.Neg(exponent), layout.fraction + 1))
    counted = g.Mul(g.cast(g.Sub(exponent, least), INT64), 1 << layout.fraction)
    bits = g.Add(counted, g.cast(steps, INT64))
    not_a_number = g.const(layout.infinity | 1 << (layout.fraction - 1), INT64)
    bits = g.Where(odd, g.Where(g.IsNaN(size), not_a_number, g.const(layout.infinity, INT64)), bits)
    return g.Where(signbit(g, x), g.BitwiseOr(bits, layout.sign), bits)


def _float_of(g: Graph, bits: Tensor, layout: Layout) -> Tensor:
    """Return the float with these bits, as float64."""
    one = 1 << layout.fraction
    fraction = g.BitwiseAnd(bits, one - 1)
    exponent = g.Div(g.BitwiseAnd(bits, layout.infinity), one)
    whole = g.Where(g.Equal(exponent, 0), fraction, g.Add(fraction, one))
    power = g.Sub(g.Max(exponent, 1), layout.bias + layout.fraction)
    finite = times_power(g, g.cast(whole, DOUBLE), g.cast(power, DOUBLE))
    odd = g.Where(g.Equal(fraction, 0), g.const(math.inf, DOUBLE), g.const(math.nan, DOUBLE))
    size = g.Where(g.Equal(exponent, 2 * layout.bias + 1), odd, finite)
    return g.Where(g.Equal(g.BitwiseAnd(bits, layout.sign), 0), size, g.Neg(size))
