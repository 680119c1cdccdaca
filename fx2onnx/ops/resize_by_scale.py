"""Upsampling by a scale that differs in ONNX's Resize: a product along each axis, with weights that the graph computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir
import sympy

from ..ir.dtypes import DOUBLE, FLOAT, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from .create import make_range
from .resize_antialiased import along_columns, along_rows, hat, keys, middles

Scale: TypeAlias = float | sympy.Basic
A = -0.75  # the parameter of torch's cubic filter without antialiasing
MAY_STAY = 1.5  # a scale from which on each size except 1 changes
BORDERS = (1.0, 2.0)  # how far a cubic filter extends beyond the image


def comes_to(size: Size, wanted: Size, scale: Scale) -> bool:
    """Return whether Resize, whose scales are float32, is known to have this output size, and whether the size is known to change."""
    if isinstance(scale, sympy.Basic):
        return False
    if isinstance(size, int) and isinstance(wanted, int):
        return wanted == int(np.float32(size) * np.float32(scale)) == int(size * float(np.float32(scale)))  # ONNX does not specify which
    return float(np.float32(scale)) == scale and not 1 < scale < MAY_STAY


def resize_by_weights(g: Graph, x: Tensor, scales: Sequence[Scale], cubic: bool) -> Tensor:
    """Append the resizing of an image by these scales: (batch, channels, *image)."""
    kind = DOUBLE if x.dtype == DOUBLE else FLOAT
    sizes = zip(x.sizes[2:], g.sizes[2:], scales, strict=True)
    weights = [(_cubic if cubic else _linear)(g, size, wanted, scale, kind) for size, wanted, scale in sizes]
    made = along_columns(g, x, weights[-1])
    if x.rank > 3:
        made = along_rows(g, x, weights[-2], made)
    if x.rank < 5:
        return made
    swapped = [0, 1, 4, 3, 2]
    return g.Transpose(along_columns(g, g.Transpose(made, perm=swapped), weights[0]), perm=swapped)


def _linear(g: Graph, size: Size, wanted: Size, scale: Scale, kind: ir.DataType) -> Tensor:
    """Return the weight of each input pixel in each output pixel, (wanted, size): the identity if the size does not change."""
    moved = g.Min(g.Max(_places(g, wanted, scale, kind), 0), g.scalar(size - 1, kind))
    stays = g.Equal(g.scalar(size, INT64), g.scalar(wanted, INT64))
    at = g.Where(stays, g.cast(make_range(g, wanted), kind), moved)
    return hat(g, g.Abs(g.Sub(g.Unsqueeze(at, [1]), g.Unsqueeze(g.cast(make_range(g, size), kind), [0]))))


def _cubic(g: Graph, size: Size, wanted: Size, scale: Scale, kind: ir.DataType) -> Tensor:
    """Return the weights of a cubic filter, where pixels outside the image are those at its edge."""
    at, pixels = g.Unsqueeze(_places(g, wanted, scale, kind), [1]), g.Unsqueeze(g.cast(make_range(g, size), kind), [0])
    last, none = g.scalar(size - 1, kind), g.const(0, kind)
    before = g.Add(*(keys(g, g.Abs(g.Add(at, beyond)), A) for beyond in BORDERS))
    behind = g.Add(*(keys(g, g.Abs(g.Sub(g.Sub(at, last), beyond)), A) for beyond in BORDERS))
    made = keys(g, g.Abs(g.Sub(at, pixels)), A)
    return g.Add(g.Add(made, g.Where(g.Equal(pixels, none), before, none)), g.Where(g.Equal(pixels, last), behind, none))


def _places(g: Graph, wanted: Size, scale: Scale, kind: ir.DataType) -> Tensor:
    """Return the positions of the output pixels in the image, (wanted,)."""
    return g.Sub(g.Mul(middles(g, wanted, kind), g.scalar(1 / scale, kind)), 0.5)
