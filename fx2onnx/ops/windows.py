"""Convolutions and pooling by windows, in dtypes for which ONNX Runtime has no kernels: float64 and integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sympy
import torch

from ..ir.dtypes import FLOAT, HALVES
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from .create import make_range
from .index import numel

KERNELS = (FLOAT, *HALVES)  # ONNX Runtime has kernels for convolution and pooling in these


class Geometry(NamedTuple):
    """One number for each spatial axis: the size, step, padding before and after, dilation, and number of the windows."""

    kernels: Sequence[Size]
    strides: Sequence[int]
    begins: Sequence[Size]  # negative if elements are skipped
    ends: Sequence[Size]
    dilations: Sequence[int]
    counts: Sequence[Size]


def windows(g: Graph, x: Tensor, at: Geometry, fill: float = 0) -> Tensor:
    """Return the elements of each window, (batch, channels, elements of a window, windows), by a Gather for each axis."""
    axes = len(at.kernels)
    pads = [0, 0, *map(_positive, at.begins), 0, 0, *map(_positive, at.ends)]
    image = g.Pad(x, pads, g.const(fill, x.dtype)) if any(pads) else x
    for i in reversed(range(axes)):
        image = g.Gather(image, _positions(g, at, i), axis=2 + i)
    order = [0, 1, *range(2, 2 + 2 * axes, 2), *range(3, 3 + 2 * axes, 2)]
    apart = g.set_sizes(g.Transpose(image, perm=order), [*x.sizes[:2], *at.kernels, *at.counts])
    sizes = [*x.sizes[:2], numel(at.kernels), numel(at.counts)]
    return g.set_sizes(g.reshape_to(apart, sizes), sizes)


def _positive(number: Size) -> Size:
    return max(number, 0) if isinstance(number, int) else sympy.Max(number, 0)


def _positions(g: Graph, at: Geometry, axis: int) -> Tensor:
    """Return the positions of the elements of each window along an axis, (kernel, windows)."""
    inner = make_range(g, at.kernels[axis], _positive(-at.begins[axis]), at.dilations[axis])
    return g.Add(g.Unsqueeze(inner, [1]), make_range(g, at.counts[axis], 0, at.strides[axis]))


def product(g: Graph, x: Tensor, weight: Tensor, bias: Tensor | None, at: Geometry) -> Tensor:
    """Return a convolution as a MatMul of the windows of each group.

    Args:
        x: (batch, channels, *image).
        weight: (groups, results of a group, channels of a group · elements of a window), of the same dtype.
        bias: (results,).
    """
    groups, of_each, inner = weight.sizes
    apart = g.reshape_to(windows(g, x, at), [x.sizes[0], groups, inner, numel(at.counts)])
    columns = [groups, inner, x.sizes[0] * numel(at.counts)]  # includes the batch, because MatMul fails for an empty one
    seen = g.Reshape(g.Transpose(apart, perm=[1, 2, 0, 3]), columns, allowzero=1)
    made = g.Reshape(g.MatMul(weight, seen), [groups, of_each, x.sizes[0], numel(at.counts)], allowzero=1)
    made = g.reshape_to(g.Transpose(made, perm=[2, 0, 1, 3]), [x.sizes[0], groups * of_each, *at.counts])
    return made if bias is None else g.Add(made, g.Unsqueeze(bias, list(range(1, len(at.counts) + 1))))


def spread_out(g: Graph, x: Tensor, strides: Sequence[int]) -> Tensor:
    """Return an image with stride − 1 zeros after each element, along each axis."""
    for axis, stride in enumerate(strides, 2):
        if stride > 1:
            sizes = [*x.sizes[:axis], x.sizes[axis] * stride, *x.sizes[axis + 1 :]]
            apart = g.Unsqueeze(x, [axis + 1])
            pads = [0] * (x.rank + 1 + axis + 1) + [stride - 1] + [0] * (x.rank - axis - 1)
            x = g.set_sizes(g.reshape_to(g.Pad(apart, pads), sizes), sizes)
    return x


def greatest(g: Graph, x: Tensor, at: Geometry) -> list[Tensor]:
    """Return the maximum of each window of integers and its position in its channel, by ArgMax.

    ONNX Runtime's ReduceMax of int64 is wrong if the largest two differ only in their lower 32 bits.
    """
    seen = windows(g, x, at, torch.iinfo(torch.int64).min)
    image = x.sizes[2:]
    places = windows(g, g.set_sizes(g.reshape_to(make_range(g, numel(image)), [1, 1, *image]), (1, 1, *image)), at)
    first = g.ArgMax(seen, axis=2, keepdims=1)
    spread = g.Expand(places, g.Shape(seen))
    sizes = [*x.sizes[:2], *at.counts]
    made = [g.Squeeze(g.GatherElements(part, first, axis=2), [2]) for part in (seen, spread)]
    return [g.set_sizes(g.reshape_to(part, sizes), sizes) for part in made]


def sum_windows(g: Graph, x: Tensor, at: Geometry) -> Tensor:
    """Return the sum of each window, (batch, channels, *windows)."""
    return g.reshape_to(g.ReduceSum(windows(g, x, at), [2], keepdims=0), [*x.sizes[:2], *at.counts])
