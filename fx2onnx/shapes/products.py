"""Shapes of products: linear layers, matrices, attention, convolutions, pools, and what reduces axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import ToFloat, TruncToInt

from .sizes import Shape, Size, Undecided, at, broadcast, plain, windows

aten = torch.ops.aten
RESIZING = (
    *(f"{kind}{axes}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for axes in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
)


def of_linear(x: Shape, weight: Shape, bias: Any = None) -> Shape:
    """Replace the last axis by as many features as the weight has rows."""
    return Shape((*x[:-1], *weight[:-1]))


def of_matmul(a: Shape, b: Shape) -> Shape:
    """Multiply matrices, broadcasting what is before them; a vector is a row on the left, a column on the right."""
    batch = broadcast(a[:-2], b[:-2])
    return Shape((*batch, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ())))


def of_added_matmul(x: Shape, a: Shape, b: Shape, **_: Any) -> Shape:
    """Multiply matrices and add what broadcasts to the product."""
    return of_matmul(a, b)


def of_dot(a: Shape, b: Shape) -> Shape:
    """Multiply vectors."""
    return Shape()


def of_attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> Shape:
    """Return a value for each query; heads of keys and values may be fewer."""
    if query[:-3] != key[:-3] or query[:-3] != value[:-3]:
        raise Undecided
    return Shape((*query[:-1], value[-1]))


def of_einsum(equation: str, tensors: Sequence[Shape], **_: Any) -> Shape:
    """Follow the equation. Raises Undecided if it has an ellipsis or no arrow."""
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    if not arrow or "." in equation:
        raise Undecided
    sizes: dict[str, Size] = {}
    for letters, shape in zip(given.split(","), tensors, strict=True):
        for letter, size in zip(letters, shape, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
    return Shape(sizes[letter] for letter in wanted)


def of_convolution(
    x: Shape, weight: Shape, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
) -> Shape:
    """Slide windows over the last axes."""
    axes = len(weight) - 2
    return Shape((*x[: -axes - 1], weight[0], *windows(x[-axes:], weight[2:], stride, padding, dilation)))


def of_max_pool(x: Shape, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Shape:
    """Slide windows without weights."""
    return _pooled(x, len(kernel), kernel, stride, padding, dilation, ceil_mode)


def of_avg_pool(x: Shape, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False, *_: Any, **__: Any) -> Shape:
    """Slide windows without weights."""
    return _pooled(x, len(kernel), kernel, stride, padding, 1, ceil_mode)


def _pooled(x: Shape, axes: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Shape:
    axes = max(axes, 1)
    if ceil_mode:
        raise Undecided
    return Shape((*x[:-axes], *windows(x[-axes:], kernel, stride or kernel, padding, dilation)))


def of_adaptive_pool(x: Shape, output_size: Any) -> Shape:
    """Return the requested output size. Raises Undecided if it is symbolic."""
    if not isinstance(output_size, (list, tuple)) or not all(isinstance(size, int) for size in output_size):
        raise Undecided
    return Shape((*x[: -len(output_size)], *output_size))


def of_resize(x: Shape, *given: Any) -> Shape:
    """Scale an image, where some scales follow from sizes. Raises Undecided where none does."""
    scales = given[-1]
    if not isinstance(scales, (list, tuple)) or not any(isinstance(scale, sympy.Basic) for scale in scales):
        raise Undecided
    scaled = [ToFloat(sympy.sympify(size)) * scale for size, scale in zip(x[2:], scales, strict=True)]
    return Shape((*x[:2], *(int(size) if size.is_number else TruncToInt(size) for size in scaled)))


def reduced(x: Shape, dim: Any = None, keepdim: bool = False, **_: Any) -> Shape:
    """Drop axes, all where none is named, or keep one element of each."""
    dims = [dim] if isinstance(dim, int) else list(dim or range(len(x)))
    axes = {at(axis, len(x)) for axis in dims}
    if keepdim:
        return Shape(1 if axis in axes else size for axis, size in enumerate(x))
    return Shape(size for axis, size in enumerate(x) if axis not in axes)


def twice_reduced(x: Shape, dim: int, keepdim: bool = False) -> list[Shape]:
    """Return values and positions."""
    return [reduced(x, dim, keepdim)] * 2


def of_deviation(x: Shape, dim: Any = None, unbiased: Any = True, keepdim: bool = False, **_: Any) -> Shape:
    """Reduce axes; `unbiased` comes before `keepdim`."""
    return reduced(x, dim, keepdim)


def of_norm(x: Shape, p: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Shape:
    """Reduce axes; the order of the norm comes first."""
    return reduced(x, dim, keepdim)


def of_everything(x: Shape, **_: Any) -> Shape:
    """Reduce all axes."""
    return Shape()


def of_topk(x: Shape, k: Any, dim: int = -1, *_: Any, **__: Any) -> list[Shape]:
    """Return so many values and positions along an axis."""
    if not x:
        return [x, x]
    sizes = list(x)
    sizes[at(dim, len(x))] = plain(k)
    return [Shape(sizes)] * 2


def _for_axes(name: str, ranks: Sequence[int] = (1, 2, 3)) -> list[Any]:
    return [getattr(aten, name.format(rank)).default for rank in ranks]


RULES: dict[Any, Any] = {
    aten.linear.default: of_linear,
    **dict.fromkeys((aten.matmul.default, aten.mm.default, aten.bmm.default, aten.mv.default), of_matmul),
    **dict.fromkeys((aten.addmm.default, aten.baddbmm.default, aten.addmv.default), of_added_matmul),
    **dict.fromkeys((aten.dot.default, aten.vdot.default), of_dot),
    aten.scaled_dot_product_attention.default: of_attention,
    aten.einsum.default: of_einsum,
    **dict.fromkeys(_for_axes("conv{}d"), of_convolution),
    **dict.fromkeys(_for_axes("max_pool{}d"), of_max_pool),
    **dict.fromkeys(_for_axes("avg_pool{}d"), of_avg_pool),
    **dict.fromkeys(_for_axes("adaptive_avg_pool{}d"), of_adaptive_pool),
    **{getattr(aten, name).vec: of_resize for name in RESIZING},
    **dict.fromkeys(
        (aten.sum.dim_IntList, aten.mean.dim, aten.amax.default, aten.amin.default, aten.any.dim, aten.all.dim, aten.logsumexp.default),
        reduced,
    ),
    **dict.fromkeys((aten.argmax.default, aten.argmin.default, aten.prod.dim_int, aten.std.correction, aten.var.correction), reduced),
    **dict.fromkeys((aten.std.dim, aten.var.dim), of_deviation),
    **dict.fromkeys((aten.norm.ScalarOpt_dim, aten.linalg_vector_norm.default), of_norm),
    **dict.fromkeys((aten.max.dim, aten.min.dim, aten.median.dim), twice_reduced),
    **dict.fromkeys((getattr(aten, name).default for name in ("sum", "mean", "max", "min", "any", "all", "prod", "median")), of_everything),
    aten.topk.default: of_topk,
}
