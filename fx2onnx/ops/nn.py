"""Convolutions, transposed convolutions, bilinear layers and weight norm. Pixel shuffles are in nn_layout.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..compat.operators import aten
from ..compat.symbols import FloorDiv
from ..errors import Untranslated
from ..ir.dtypes import FLOAT, FLOATS, HALVES, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .index import numel
from .reduce import append_reduce
from .shape import END
from .windows import KERNELS, Geometry, product, spread_out

Ints: TypeAlias = Size | Sequence[Size]  # one for all spatial axes, or one for each


def each(value: Ints, axes: int) -> list[int]:
    """Return one integer for each axis, from one for all or a list, which may have only one element.

    Raises:
        Untranslated: a number is symbolic, but ONNX has an attribute.
    """
    values = spread(value, axes)
    if not all(isinstance(v, int) for v in values):
        raise Untranslated(f"{value} depends on the input, but ONNX needs a constant")
    return values


def spread(value: Ints, axes: int) -> list[Any]:
    """Return one size for each axis, from one for all or a list, which may have only one element."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * axes if len(values) == 1 else values


def add_batch_axis(g: Graph, x: Tensor, rank: int) -> Tensor:
    """Return x (channels, …) with a leading batch axis, (1, channels, …), if it has one axis less than `rank`."""
    return x if x.rank == rank else g.set_sizes(g.Unsqueeze(x, [0]), (1, *x.sizes))


def remove_batch_axis(g: Graph, made: Tensor, x: Tensor, rank: int) -> Tensor:
    """Return the result without the batch axis that `add_batch_axis` added to its input."""
    return made if x.rank == rank else g.Squeeze(made, [0])


@translates(aten.conv1d.default, aten.conv2d.default, aten.conv3d.default, aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding)
def conv(
    g: Graph,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: Size = 1,
) -> Tensor:
    """conv(x, w, b?, stride, padding, dilation, groups) → Conv; without a batch axis, Unsqueeze before and Squeeze after it.

    In float64 and for integers, for which ONNX Runtime has no kernel, it becomes a Gather of the windows and a MatMul. The same applies if
    the number of groups is dynamic, because it is an attribute in ONNX.
    """
    axes = weight.rank - 2
    strides, dilations = each(stride, axes), each(dilation, axes)
    pads, image = _pads(padding, weight, dilations), add_batch_axis(g, x, weight.rank)
    if x.dtype in KERNELS and isinstance(groups, int):
        if not all(isinstance(pad, int) for pad in pads):
            image, pads = g.Pad(image, [0, 0, *pads[:axes], 0, 0, *pads[axes:]]), [0] * (2 * axes)
        made = g.Conv(image, weight, bias, strides=strides, pads=pads, dilations=dilations, group=groups)
    else:
        results, inner, *kernels = weight.sizes
        sizes = (groups, divide_size(results, groups), inner * numel(kernels))
        flat = g.set_sizes(g.reshape_to(weight, sizes), sizes)
        made = _product(g, image, flat, bias, Geometry(kernels, strides, pads[:axes], pads[axes:], dilations, g.sizes[-axes:]))
    return remove_batch_axis(g, made, x, weight.rank)


def divide_size(size: Size, count: Size) -> Size:
    """Return the size of each part of an axis that is divided into equal parts."""
    return size // count if isinstance(size, int) and isinstance(count, int) else FloorDiv(size, count)


def _product(g: Graph, x: Tensor, weight: Tensor, bias: Tensor | None, at: Geometry) -> Tensor:
    """Return a convolution as a product, with integers in int64 and half precision in float32."""
    wide = FLOAT if x.dtype in HALVES else x.dtype if x.dtype in FLOATS else INT64
    x, weight = (g.set_sizes(g.cast(part, wide), part.sizes) for part in (x, weight))
    return product(g, x, weight, None if bias is None else g.cast(bias, wide), at)


def _pads(padding: Ints | str, weight: Tensor, dilations: Sequence[int]) -> list[Size]:
    """Return padding in ONNX's order: all starts, then all ends. For "same", torch puts an odd element at the end."""
    if padding == "valid":
        padding = 0
    if isinstance(padding, str):
        total = [d * (k - 1) for d, k in zip(dilations, weight.sizes[2:], strict=True)]
        return [divide_size(t, 2) for t in total] + [t - divide_size(t, 2) for t in total]
    return list(each(padding, len(dilations)) * 2)


@translates(aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input)
def conv_transpose(
    g: Graph,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """conv_transpose(x, w, b?, stride, padding, output_padding, groups, dilation) → ConvTranspose.

    ONNX Runtime refuses an output_padding that is not below the stride; it becomes less padding at the end, or Pad of the result and Add.
    A dynamic output_padding becomes the largest one, and Slice. In float64 and for integers it becomes Gather and MatMul.
    """
    axes = weight.rank - 2
    if isinstance(output_padding, (list, tuple)) and not all(isinstance(further, int) for further in output_padding):
        return _transposed_to_sizes(g, x, weight, bias, stride, padding, output_padding, groups, dilation)
    if x.dtype not in KERNELS:
        return _transposed_product(g, x, weight, bias, stride, padding, output_padding, groups, dilation)
    strides, begins, further = each(stride, axes), each(padding, axes), each(output_padding, axes)
    ends = begins
    if any(f >= s for f, s in zip(further, strides, strict=True)):
        ends, further = [b - f for b, f in zip(begins, further, strict=True)], [0] * axes
    beyond = [max(-end, 0) for end in ends]
    made = g.ConvTranspose(
        add_batch_axis(g, x, weight.rank), weight, None if any(beyond) else bias,
        strides=strides, pads=begins + [max(end, 0) for end in ends], output_padding=further,
        dilations=each(dilation, axes), group=each(groups, 1)[0],
    )  # fmt: skip
    if any(beyond):
        made = g.Pad(made, [0] * (axes + 4) + beyond)
        made = made if bias is None else g.Add(made, g.Unsqueeze(bias, list(range(1, axes + 1))))
    return remove_batch_axis(g, made, x, weight.rank)


def _transposed_product(
    g: Graph, x: Tensor, weight: Tensor, bias: Tensor | None,
    stride: Ints, padding: Ints, output_padding: Ints, groups: int, dilation: Ints,
) -> Tensor:  # fmt: skip
    """Return the convolution of the image, with zeros between its elements, with the flipped weight."""
    axes = weight.rank - 2
    strides, paddings, dilations, further = (each(given, axes) for given in (stride, padding, dilation, output_padding))
    channels, results, *kernels = weight.sizes
    reach = [d * (k - 1) for d, k in zip(dilations, kernels, strict=True)]
    image = add_batch_axis(g, x, weight.rank)
    terms = zip(image.sizes[2:], strides, paddings, reach, further, strict=True)
    counts = [(size - 1) * s - 2 * p + r + f + 1 for size, s, p, r, f in terms]
    begins = [r - p for r, p in zip(reach, paddings, strict=True)]
    ends = [r - p + f + 1 - s for r, p, f, s in zip(reach, paddings, further, strides, strict=True)]
    turned = g.Slice(weight, [-1] * axes, [-END] * axes, list(range(2, axes + 2)), [-1] * axes)
    apart = g.reshape_to(turned, [groups, divide_size(channels, groups), results, numel(kernels)])
    sizes = (groups, results, divide_size(channels, groups) * numel(kernels))
    flat = g.set_sizes(g.reshape_to(g.Transpose(apart, perm=[0, 2, 1, 3]), sizes), sizes)
    made = _product(g, spread_out(g, image, strides), flat, bias, Geometry(kernels, [1] * axes, begins, ends, dilations, counts))
    return remove_batch_axis(g, made, x, weight.rank)


def _transposed_to_sizes(
    g: Graph, x: Tensor, weight: Tensor, bias: Tensor | None,
    stride: Ints, padding: Ints, output_padding: Sequence[Size], groups: int, dilation: Ints,
) -> Tensor:  # fmt: skip
    """Return a transposed convolution with the largest output padding, cut to its sizes: more padding does not change other elements."""
    axes = weight.rank - 2
    strides, paddings, dilations = each(stride, axes), each(padding, axes), each(dilation, axes)
    most = [max(s, d) - 1 for s, d in zip(strides, dilations, strict=True)]
    made = conv_transpose(g, x, weight, bias, strides, paddings, most, groups, dilations)
    terms = zip(x.sizes[-axes:], weight.sizes[2:], strides, paddings, output_padding, dilations, strict=True)
    sizes = [(size - 1) * s - 2 * p + d * (k - 1) + further + 1 for size, k, s, p, further, d in terms]
    return g.Slice(made, [0] * axes, g.ints(sizes), list(range(-axes, 0)))


@translates(aten.convolution.default, aten._convolution.default, aten._convolution.deprecated)
def convolution(
    g: Graph,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    *_: bool,
) -> Tensor:
    """convolution(x, w, b?, stride, padding, dilation, transposed, output_padding, groups) → Conv or ConvTranspose."""
    if transposed:
        return conv_transpose(g, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(g, x, weight, bias, stride, padding, dilation, groups)


@translates(aten.bilinear.default)
def bilinear(g: Graph, x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """bilinear(x1, x2, w, b?) → Σᵢⱼ x1ᵢ·wₖᵢⱼ·x2ⱼ: Einsum, Add."""
    made = g.Einsum(x1, weight, x2, equation="...i,kij,...j->...k")
    return made if bias is None else g.Add(made, bias)


@translates(aten._weight_norm.default)
def weight_norm(g: Graph, v: Tensor, magnitude: Tensor, dim: int = 0) -> Tensor:
    """_weight_norm(v, g, dim) → v·g/‖v‖, the norm over all axes but dim: ReduceL2, Div, Mul."""
    return _weight_norm(g, v, magnitude, dim)[0]


@translates(aten._weight_norm_interface.default)
def weight_norm_interface(g: Graph, v: Tensor, magnitude: Tensor, dim: int = 0) -> list[Tensor]:
    """_weight_norm_interface(v, g, dim) → the weight and the norm."""
    return _weight_norm(g, v, magnitude, dim)


def _weight_norm(g: Graph, v: Tensor, magnitude: Tensor, dim: int) -> list[Tensor]:
    others = [axis for axis in range(v.rank) if dim == -1 or axis != dim % v.rank]
    norm = append_reduce(g, "ReduceL2", v, others, dim != -1)
    return [g.Mul(v, g.Div(magnitude, norm)), norm]
