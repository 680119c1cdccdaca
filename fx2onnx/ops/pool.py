"""Pooling with windows of constant size, and unpooling. Pooling to an output size is in pool_adaptive.py."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import onnx_ir as ir

from ..compat.operators import aten
from ..ir.dtypes import FLOATS, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .nn import Ints, add_batch_axis, each, remove_batch_axis, spread
from .reduce import mean_of
from .reduce_extreme import amax
from .windows import KERNELS, Geometry, greatest, sum_windows

AXES = {"1d": 1, "2d": 2, "3d": 3}


def axes_of(g: Graph) -> int:
    """Return how many axes the operator being translated pools over, according to its name."""
    return next(axes for suffix, axes in AXES.items() if suffix in g.overload._schema.name)


def max_pooled(
    g: Graph, x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool, outputs: int
) -> list[Tensor]:
    """Append MaxPool, and for two outputs Mod for the position of each maximum in its channel. int64 uses windows.

    x: (batch, channels, *image) or (channels, *image); both outputs have the same axes.
    """
    axes = axes_of(g)
    kernels, dilations = each(kernel, axes), each(dilation, axes)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernels, strict=True)]
    strides, pads = each(stride, axes) if stride else kernels, each(padding, axes)
    if x.dtype == INT64:  # ONNX Runtime has no kernel for it
        at = Geometry(kernels, strides, pads, [max(r, p) for r, p in zip(reach, pads, strict=True)], dilations, g.sizes[-axes:])
        return [remove_batch_axis(g, value, x, axes + 2) for value in greatest(g, add_batch_axis(g, x, axes + 2), at)[:outputs]]
    attributes = _geometry(g, x, kernels, reach, strides, pads, ceil_mode)
    made = g.MaxPool(add_batch_axis(g, x, axes + 2), outputs=outputs, dilations=dilations, **attributes)
    if outputs == 1:
        return [remove_batch_axis(g, made, x, axes + 2)]
    made[1].type = ir.TensorType(INT64)
    position = g.Mod(made[1], g.ints([prod(x.sizes[-axes:])]))
    return [remove_batch_axis(g, value, x, axes + 2) for value in (made[0], position)]


def _geometry(
    g: Graph, x: Tensor, kernels: list[int], reach: list[int], strides: list[int], pads: list[int], ceil_mode: bool
) -> dict[str, Any]:
    """Return the attributes of a pooling; ceil_mode becomes more padding at the end if sizes are known and it is below the kernel.

    ONNX's shape inference counts windows that start after the input, which torch and the kernels of ONNX Runtime omit.
    """
    attributes = {"kernel_shape": kernels, "strides": strides, "pads": pads * 2}
    sizes, wanted = x.sizes[-len(kernels) :], g.sizes[-len(kernels) :]
    if not ceil_mode:
        return attributes
    if all(isinstance(size, int) for size in sizes):
        given = zip(sizes, wanted, reach, strides, pads, strict=True)
        ends = [max((out - 1) * stride + r - size - pad, 0) for size, out, r, stride, pad in given]
        if all(end < kernel for end, kernel in zip(ends, kernels, strict=True)):
            return attributes | {"pads": pads + ends}
    return attributes | {"ceil_mode": True}


@translates(aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
def max_pool(
    g: Graph, x: Tensor, kernel: Ints, stride: Ints = (), padding: Ints = 0, dilation: Ints = 1, ceil_mode: bool = False
) -> Tensor:
    """max_pool(x, kernel, stride, padding, dilation, ceil_mode) → MaxPool, or amax over whole dynamic axes."""
    if whole := _whole_axes(x, kernel, padding, axes_of(g)):
        kernel, stride = _left(whole, kernel, stride, axes_of(g))
        x = g.set_sizes(amax(g, x, whole, keepdim=True), _ones_at(whole, x.sizes))
        if set(kernel) == {1}:
            return x
    return max_pooled(g, x, kernel, stride, padding, dilation, ceil_mode, 1)[0]


@translates(aten.max_pool1d_with_indices.default, aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool_with_indices(
    g: Graph, x: Tensor, kernel: Ints, stride: Ints = (), padding: Ints = 0, dilation: Ints = 1, ceil_mode: bool = False
) -> list[Tensor]:
    """max_pool_with_indices(x, kernel, stride, padding, dilation, ceil_mode) → MaxPool with two outputs, Mod."""
    return max_pooled(g, x, kernel, stride, padding, dilation, ceil_mode, 2)


@translates(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
def avg_pool(
    g: Graph,
    x: Tensor,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """avg_pool(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override) → AveragePool, or mean over whole dynamic axes.

    With ceil_mode, torch's divisor for windows that extend beyond the end differs: Mul by the number of elements inside, and Div.
    In float64 and for integers it is the sum of the windows by Gather.
    """
    axes = axes_of(g)
    if not divisor_override and (taken := _whole_axes(x, kernel, padding, axes)):
        kernel, stride = _left(taken, kernel, stride, axes)
        x = g.set_sizes(mean_of(g, x, taken, keepdim=True), _ones_at(taken, x.sizes))
        if set(kernel) == {1}:
            return x
    kernels, pads = each(kernel, axes), each(padding, axes)
    strides = each(stride, axes) if stride else kernels
    if x.dtype not in KERNELS:
        return _mean_of_windows(g, x, kernels, strides, pads, count_include_pad, divisor_override)
    whole = not ceil_mode and (count_include_pad or bool(divisor_override))
    attributes = _geometry(g, x, kernels, kernels, strides, pads, ceil_mode)
    made = g.AveragePool(add_batch_axis(g, x, axes + 2), **attributes, count_include_pad=whole or None)
    geometry = x.sizes[-axes:], kernels, strides, pads
    if ceil_mode and (count_include_pad or divisor_override):
        made = g.Mul(made, g.cast(_counts(g, *geometry, included=False), made.dtype))
        made = g.Div(made, divisor_override or g.cast(_counts(g, *geometry, included=True), made.dtype))
    elif divisor_override:
        made = g.Mul(made, prod(kernels) / divisor_override)
    return remove_batch_axis(g, made, x, axes + 2)


def _whole_axes(x: Tensor, kernel: Ints, padding: Ints, axes: int) -> list[int]:
    """Return the dynamic axes, counted from the end, that the kernel covers completely: `F.max_pool1d(x, x.shape[2])`."""
    kernels, sizes = spread(kernel, axes), x.sizes[-axes:]
    each_axis = zip(range(-axes, 0), kernels, sizes, each(padding, axes), strict=True)
    return [axis for axis, k, size, pad in each_axis if not isinstance(k, int) and k == size and not pad]


def _left(whole: Sequence[int], kernel: Ints, stride: Ints, axes: int) -> tuple[list[Size], list[Size]]:
    """Return the kernel and the stride with 1 for these axes."""
    kernels = spread(kernel, axes)
    return _ones_at(whole, kernels), _ones_at(whole, spread(stride, axes) if stride else kernels)


def _ones_at(axes: Sequence[int], sizes: Sequence[Size]) -> list[Size]:
    return [1 if axis in axes else size for axis, size in zip(range(-len(sizes), 0), sizes, strict=True)]


def _mean_of_windows(
    g: Graph, x: Tensor, kernels: Sequence[int], strides: Sequence[int], pads: Sequence[int], with_padding: bool, divisor: int | None
) -> Tensor:
    """Return the sum of each window divided by torch's number of elements; for integers the quotient is truncated."""
    axes = len(kernels)
    wide = x.dtype if x.dtype in FLOATS else INT64
    image = add_batch_axis(g, g.set_sizes(g.cast(x, wide), x.sizes), axes + 2)
    ends = [max(k, p) for k, p in zip(kernels, pads, strict=True)]
    total = sum_windows(g, image, Geometry(kernels, strides, pads, ends, [1] * axes, g.sizes[-axes:]))
    divided = divisor or g.cast(_counts(g, x.sizes[-axes:], kernels, strides, pads, included=with_padding), wide)
    return remove_batch_axis(g, g.Div(total, divided), x, axes + 2)


def _counts(g: Graph, sizes: Sequence[Size], kernels: Sequence[int], strides: Sequence[int], pads: Sequence[int], included: bool) -> Tensor:
    """Return torch's divisor for each window: the number of elements inside the image, or with `included` also inside its padding.

    The result is int64 and broadcasts against (batch, channels, *windows).
    """
    counts = g.const(1, INT64)
    for axis, (size, kernel, stride, pad) in enumerate(zip(sizes, kernels, strides, pads, strict=True)):
        windows = g.sizes[axis - len(sizes)]
        last = g.scalar(size + pad, INT64)
        begins = g.Sub(g.Mul(g.Range(g.const(0, INT64), g.scalar(windows, INT64), g.const(1, INT64)), stride), pad)
        ends = g.Min(g.Add(begins, kernel), last if included else g.scalar(size, INT64))
        inside = g.Sub(ends, begins if included else g.Max(begins, 0))
        counts = g.Mul(counts, g.Reshape(inside, [-1] + [1] * (len(sizes) - axis - 1)))
    return counts


@translates(aten.max_unpool2d.default, aten.max_unpool3d.default)
def max_unpool(g: Graph, x: Tensor, indices: Tensor, output_size: Sequence[Size], *_: object) -> Tensor:
    """max_unpool(x, indices, size) → ScatterElements into zeros with the spatial axes merged; Reshape."""
    # x and indices: (batch, channels, *pooled), the result: (batch, channels, *size)
    outer = x.sizes[: -len(output_size)]
    zeros = g.Expand(g.scalar(0, x.dtype), [*outer, prod(output_size)])
    flat = [g.Reshape(value, g.ints([*outer, prod(x.sizes[len(outer) :])])) for value in (indices, x)]
    return g.reshape_to(g.ScatterElements(zeros, *flat, axis=-1), g.sizes)
