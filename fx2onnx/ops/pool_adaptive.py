"""Pooling to an output size, which may not divide the input size. Windows of constant size are in pool.py."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import onnx_ir as ir
import sympy

from ..compat.operators import aten
from ..compat.symbols import FloorDiv
from ..ir.dtypes import DOUBLE, INT64
from ..ir.expressions import UNKNOWN_SIZE, Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .nn import add_batch_axis, remove_batch_axis
from .pool import axes_of


class Windows(NamedTuple):
    """For each output position along an axis: the input positions, padded with the last one, which of them are real, and how many."""

    positions: Tensor  # (wanted, longest), int64
    real: Tensor  # (wanted, longest), bool
    lengths: Tensor  # (wanted, 1), int64


def windows(g: Graph, size: Size, wanted: Size) -> Windows:
    """Return the windows: output i reads ⌊i·size/wanted⌋ to ⌈(i + 1)·size/wanted⌉, exclusive: at most size//wanted + 2 positions."""
    counted = wanted if isinstance(wanted, int) else sympy.Max(wanted, 1)  # ONNX Runtime divides by zero even if there are no windows
    longest = size // counted + 2 if isinstance(size, int) and isinstance(counted, int) else FloorDiv(size, counted) + 2
    size, wanted, counted = (g.scalar(number, INT64) for number in (size, wanted, counted))
    one, zero = g.const(1, INT64), g.const(0, INT64)
    outputs = g.Unsqueeze(g.Range(zero, wanted, one), [1])
    begins = g.Div(g.Mul(outputs, size), counted)
    ends = g.Div(g.Sub(g.Add(g.Mul(g.Add(outputs, one), size), counted), one), counted)
    positions = g.Add(begins, g.Range(zero, g.scalar(longest, INT64), one))
    return Windows(g.Min(positions, g.Sub(ends, one)), g.Less(positions, ends), g.Sub(ends, begins))


def divides(size: Size, wanted: Size) -> bool:
    """Return whether both sizes are known and all windows have the same size."""
    return isinstance(size, int) and isinstance(wanted, int) and wanted > 0 and size > 0 and size % wanted == 0


@translates(
    aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default, aten.adaptive_avg_pool3d.default,
    aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default,
)  # fmt: skip
def adaptive_avg_pool(g: Graph, x: Tensor, output_size: Sequence[Size]) -> Tensor:
    """adaptive_avg_pool(x, size) → ReduceMean for size 1, AveragePool if it divides the input, else Gather, Where, ReduceSum, Div."""
    axes = axes_of(g)
    if all(size == 1 for size in output_size):
        return g.ReduceMean(x, list(range(x.rank - axes, x.rank)), keepdims=1)
    sizes = x.sizes[-axes:]
    if x.dtype != DOUBLE and all(map(divides, sizes, output_size)):
        kernel = [size // wanted for size, wanted in zip(sizes, output_size, strict=True)]
        return remove_batch_axis(g, g.AveragePool(add_batch_axis(g, x, axes + 2), kernel_shape=kernel, strides=kernel), x, axes + 2)
    made = x
    for axis, size, wanted in zip(range(x.rank - axes, x.rank), sizes, output_size, strict=True):
        made = made if size == wanted else _means(g, made, axis, x.rank, size, wanted)
    return made


def _means(g: Graph, x: Tensor, axis: int, rank: int, size: Size, wanted: Size) -> Tensor:
    """Return the mean over each window of one axis."""
    if wanted == 1:
        return g.ReduceMean(x, [axis], keepdims=1)
    along, later = windows(g, size, wanted), list(range(2, rank - axis + 1))
    real, lengths = (g.Unsqueeze(value, later) if later else value for value in (along.real, along.lengths))
    read = g.Where(real, g.Gather(x, along.positions, axis=axis), g.scalar(0, x.dtype))
    return g.Div(g.ReduceSum(read, [axis + 1], keepdims=0), g.cast(g.Squeeze(lengths, [1]), x.dtype))


@translates(aten.adaptive_max_pool1d.default, aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(g: Graph, x: Tensor, output_size: Sequence[Size]) -> list[Tensor]:
    """adaptive_max_pool(x, size) → MaxPool if it divides the input, else Gather of all windows, ReduceMax, ArgMax."""
    axes = axes_of(g)
    sizes = x.sizes[-axes:]
    if all(map(divides, sizes, output_size)):
        return _max_pool(g, x, axes, [size // wanted for size, wanted in zip(sizes, output_size, strict=True)])
    table = g.const([[0]], INT64)
    for size, wanted in zip(sizes, output_size, strict=True):
        inner = windows(g, size, wanted).positions
        pairs = g.Add(g.Mul(g.Unsqueeze(table, [1, 3]), g.scalar(size, INT64)), g.Unsqueeze(inner, [0, 2]))
        table = g.Reshape(pairs, g.Mul(g.Shape(table), g.Shape(inner)), allowzero=1)
    flat = g.Reshape(x, g.ints([*x.sizes[:-axes], prod(sizes)]))
    read = g.Gather(flat, table, axis=-1)
    last = x.rank - axes + 1
    best = g.ArgMax(read, axis=last, keepdims=1)
    places = g.GatherElements(g.Expand(table, g.Shape(read)), best, axis=-1)
    return [g.reshape_to(g.set_sizes(value, (UNKNOWN_SIZE,)), g.sizes) for value in (g.ReduceMax(read, [last], keepdims=0), places)]


def _max_pool(g: Graph, x: Tensor, axes: int, kernel: list[int]) -> list[Tensor]:
    values, places = g.MaxPool(add_batch_axis(g, x, axes + 2), outputs=2, kernel_shape=kernel, strides=kernel)
    places.type = ir.TensorType(INT64)
    inside = g.Mod(places, g.ints([prod(x.sizes[-axes:])]))
    return [remove_batch_axis(g, value, x, axes + 2) for value in (values, inside)]
