"""Rearranging pixels: shuffles, patches of images, bags of embeddings. Resizing is in resize.py."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..compat.operators import aten
from ..compat.symbols import FloorDiv
from ..errors import Untranslated
from ..ir.dtypes import FLOATS, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .nn import Ints, add_batch_axis, each, remove_batch_axis
from .scatter import append_scatter

SUM, MEAN, MAX = 0, 1, 2


@translates(aten.pixel_shuffle.default)
def pixel_shuffle(g: Graph, x: Tensor, factor: int) -> Tensor:
    """pixel_shuffle(x, r): (…, C·r², H, W) to (…, C, H·r, W·r) → DepthToSpace, or Reshape, Transpose, Reshape."""
    if x.rank == 4 and x.dtype in FLOATS:
        return g.DepthToSpace(x, blocksize=factor, mode="CRD")
    *outer, _, height, width = x.sizes
    parted = g.reshape_to(x, [*outer, g.sizes[-3], factor, factor, height, width])
    n = len(outer)
    return g.reshape_to(g.Transpose(parted, perm=[*range(n), n, n + 3, n + 1, n + 4, n + 2]), g.sizes)


@translates(aten.pixel_unshuffle.default)
def pixel_unshuffle(g: Graph, x: Tensor, factor: int) -> Tensor:
    """pixel_unshuffle(x, r): (…, C, H·r, W·r) to (…, C·r², H, W) → Reshape, Transpose, Reshape."""
    *outer, channels, _, _ = x.sizes
    parted = g.reshape_to(x, [*outer, channels, g.sizes[-2], factor, g.sizes[-1], factor])
    n = len(outer)
    return g.reshape_to(g.Transpose(parted, perm=[*range(n), n, n + 2, n + 4, n + 1, n + 3]), g.sizes)


@translates(aten.channel_shuffle.default)
def channel_shuffle(g: Graph, x: Tensor, groups: int) -> Tensor:
    """channel_shuffle(x, groups) → Reshape, Transpose, Reshape."""
    channels = x.sizes[1]
    each_group = channels // groups if isinstance(channels, int) else FloorDiv(channels, groups)
    parted = g.reshape_to(x, [x.sizes[0], groups, each_group, *x.sizes[2:]])
    return g.reshape_to(g.Transpose(parted, perm=[0, 2, 1, *range(3, x.rank + 1)]), g.sizes)


@translates(aten.im2col.default)
def im2col(g: Graph, x: Tensor, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    """im2col(x, kernel, dilation, padding, stride) → Pad, a Gather of windows for each axis, Transpose, Reshape."""
    kernel, dilation, padding, stride = (each(v, 2) for v in (kernel, dilation, padding, stride))
    image = add_batch_axis(g, x, 4)
    sizes = [size + 2 * pad for size, pad in zip(x.sizes[-2:], padding, strict=True)]
    rows, columns = (_windows(g, *given) for given in zip(sizes, kernel, dilation, stride, strict=True))
    if any(padding):
        image = g.Pad(image, [0, 0, *padding] * 2)
    windows = g.Gather(g.Gather(image, rows, axis=2), columns, axis=4)
    return g.reshape_to(g.Transpose(windows, perm=[0, 1, 2, 4, 3, 5]), g.sizes)


def _windows(g: Graph, size: Size, kernel: int, dilation: int, stride: int) -> Tensor:
    """Return the positions along one axis that each kernel element reads: (kernel, number of windows)."""
    inner = torch.arange(kernel)[:, None] * dilation
    if isinstance(size, int):
        count = (size - dilation * (kernel - 1) - 1) // stride + 1
        return g.const(inner + torch.arange(count) * stride, INT64)
    last = g.scalar(size - dilation * (kernel - 1), INT64)
    return g.Add(g.Range(g.const(0, INT64), last, stride), g.const(inner, INT64))


@translates(aten.col2im.default)
def col2im(g: Graph, x: Tensor, output_size: Sequence[Size], kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    """col2im(x, output_size, kernel, dilation, padding, stride) → Col2Im."""
    made = g.Col2Im(
        add_batch_axis(g, x, 3),
        list(output_size),
        each(kernel, 2),
        dilations=each(dilation, 2),
        pads=each(padding, 2) * 2,
        strides=each(stride, 2),
    )
    return remove_batch_axis(g, made, x, 3)


@translates(
    aten.embedding_bag.padding_idx, aten.embedding_bag.default, aten._embedding_bag.default, aten._embedding_bag_forward_only.default
)
def embedding_bag(
    g: Graph,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> list[Tensor | None]:
    """embedding_bag(weight, indices, offsets, …, mode) → Gather, and ScatterElements by bag, with add or max."""
    if any(user.args[1] != 0 and user.users for user in g.at.users):
        raise Untranslated("only its first result is translated, but others are used")
    rows = g.Gather(weight, indices)
    if per_sample_weights is not None:
        rows = g.Mul(rows, g.Unsqueeze(per_sample_weights, [1]))
    bag = _bag_of_each(g, indices, offsets)
    counted = g.const([1], weight.dtype)
    if padding_idx is not None and padding_idx >= 0:
        kept = g.Unsqueeze(g.Not(g.Equal(indices, padding_idx)), [1])
        rows = g.Where(kept, rows, g.scalar(-torch.inf if mode == MAX else 0, rows.dtype))
        counted = g.cast(kept, weight.dtype)
    made = _scatter_bags(g, bag, rows, mode)
    if mode == SUM:
        return [made, None, None, None]
    count = _scatter_bags(g, bag, g.Expand(counted, g.Shape(rows)), SUM)
    if mode == MEAN:
        return [g.Div(made, g.Max(count, 1)), None, None, None]
    return [g.Where(g.Equal(count, 0), g.scalar(0, weight.dtype), made), None, None, None]


def _bag_of_each(g: Graph, indices: Tensor, offsets: Tensor) -> Tensor:
    """Return the bag of each index, as one column: the number of offsets at or before its position, less one."""
    positions = g.Range(g.const(0, INT64), g.scalar(indices.sizes[0], INT64), g.const(1, INT64))
    begun = g.LessOrEqual(g.cast(offsets, INT64), g.Unsqueeze(positions, [1]))
    return g.Sub(g.ReduceSum(g.cast(begun, INT64), [1]), 1)


def _scatter_bags(g: Graph, bag: Tensor, rows: Tensor, mode: int) -> Tensor:
    empty = g.Expand(g.scalar(-torch.inf if mode == MAX else 0, rows.dtype), list(g.sizes))
    return append_scatter(g, "ScatterElements", empty, g.Expand(bag, g.Shape(rows)), rows, "max" if mode == MAX else "add", axis=0)
