"""Shape functions of linear layers, matrix products, attention, convolutions, pooling and reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from ..compat.symbols import ToFloat, TruncToInt
from ..trace.effects import RESIZING
from .sizes import DataDependentGuard, Shape, Size, at, broadcast, plain, windows

aten = torch.ops.aten


def linear_shape(x: Shape, weight: Shape, bias: Any = None) -> Shape:
    """Replace the last axis by the number of rows of the weight."""
    return Shape((*x[:-1], *weight[:-1]))


def matmul_shape(a: Shape, b: Shape) -> Shape:
    """Multiply matrices with broadcast batch axes; a vector is a row on the left and a column on the right."""
    batch = broadcast(a[:-2], b[:-2])
    return Shape((*batch, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ())))


def addmm_shape(x: Shape, a: Shape, b: Shape, **_: Any) -> Shape:
    """Multiply matrices, and add a tensor that broadcasts to the product."""
    return matmul_shape(a, b)


def dot_shape(a: Shape, b: Shape) -> Shape:
    """Multiply vectors."""
    return Shape()


def attention_shape(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> Shape:
    """Return a value for each query; keys and values may have fewer heads."""
    if query[:-3] != key[:-3] or query[:-3] != value[:-3]:
        raise DataDependentGuard
    return Shape((*query[:-1], value[-1]))


def einsum_shape(equation: str, tensors: Sequence[Shape], **_: Any) -> Shape:
    """Evaluate the equation. Raises DataDependentGuard if it has an ellipsis or no arrow."""
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    if not arrow or "." in equation:
        raise DataDependentGuard
    sizes: dict[str, Size] = {}
    for letters, shape in zip(given.split(","), tensors, strict=True):
        for letter, size in zip(letters, shape, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
    return Shape(sizes[letter] for letter in wanted)


def convolution_shape(
    x: Shape, weight: Shape, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
) -> Shape:
    """Slide windows over the last axes."""
    axes = len(weight) - 2
    return Shape((*x[: -axes - 1], weight[0], *windows(x[-axes:], weight[2:], stride, padding, dilation)))


def max_pool_shape(x: Shape, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Shape:
    """Slide windows without weights."""
    return _pool_shape(x, len(kernel), kernel, stride, padding, dilation, ceil_mode)


def avg_pool_shape(x: Shape, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False, *_: Any, **__: Any) -> Shape:
    """Slide windows without weights."""
    return _pool_shape(x, len(kernel), kernel, stride, padding, 1, ceil_mode)


def _pool_shape(x: Shape, axes: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Shape:
    axes = max(axes, 1)
    if ceil_mode:
        raise DataDependentGuard
    return Shape((*x[:-axes], *windows(x[-axes:], kernel, stride or kernel, padding, dilation)))


def adaptive_pool_shape(x: Shape, output_size: Any) -> Shape:
    """Return the requested output size. Raises DataDependentGuard if it is symbolic."""
    if not isinstance(output_size, (list, tuple)) or None in output_size:
        raise DataDependentGuard
    return Shape((*x[: -len(output_size)], *map(plain, output_size)))


def adaptive_max_pool_shapes(x: Shape, output_size: Any) -> list[Shape]:
    """Return values and positions of the requested output size."""
    return [adaptive_pool_shape(x, output_size)] * 2


def resize_shape(x: Shape, *given: Any) -> Shape:
    """Scale an image if some scales depend on sizes. Raises DataDependentGuard if none does."""
    scales = given[-1]
    if not isinstance(scales, (list, tuple)) or not any(isinstance(scale, sympy.Basic) for scale in scales):
        raise DataDependentGuard
    scaled = [ToFloat(sympy.sympify(size)) * scale for size, scale in zip(x[2:], scales, strict=True)]
    return Shape((*x[:2], *(int(size) if size.is_number else TruncToInt(size) for size in scaled)))


def affine_grid_shape(theta: Shape, size: Sequence[Any], align_corners: bool) -> Shape:
    """Return a point for each position of an image or a volume of these sizes."""
    batch, _, *axes = size
    return Shape(map(plain, (batch, *axes, len(axes))))


def recurrent_shapes(x: Shape, hidden: Any, *given: Any) -> list[Shape]:
    """Return one output for each step and direction, and the last states."""
    states = [hidden] if isinstance(hidden, Shape) else list(hidden)
    is_bidirectional = given[-2]
    return [Shape((*x[:-1], plain((2 if is_bidirectional else 1) * states[0][-1]))), *states]


def reduction_shape(x: Shape, dim: Any = None, keepdim: bool = False, **_: Any) -> Shape:
    """Remove axes (all if none is given), or keep them with size 1."""
    dims = [dim] if isinstance(dim, int) else list(dim or range(len(x)))
    axes = {at(axis, len(x)) for axis in dims}
    if keepdim:
        return Shape(1 if axis in axes else size for axis, size in enumerate(x))
    return Shape(size for axis, size in enumerate(x) if axis not in axes)


def reduction_shapes_with_indices(x: Shape, dim: int, keepdim: bool = False) -> list[Shape]:
    """Return the shapes of values and indices."""
    return [reduction_shape(x, dim, keepdim)] * 2


def std_shape(x: Shape, dim: Any = None, unbiased: Any = True, keepdim: bool = False, **_: Any) -> Shape:
    """Reduce axes; `unbiased` precedes `keepdim`."""
    return reduction_shape(x, dim, keepdim)


def norm_shape(x: Shape, p: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Shape:
    """Reduce axes; the order of the norm is the first argument."""
    return reduction_shape(x, dim, keepdim)


def full_reduction_shape(x: Shape, **_: Any) -> Shape:
    """Reduce all axes."""
    return Shape()


def topk_shapes(x: Shape, k: Any, dim: int = -1, *_: Any, **__: Any) -> list[Shape]:
    """Return the shapes of `k` values and indices along an axis."""
    if not x:
        return [x, x]
    sizes = list(x)
    sizes[at(dim, len(x))] = plain(k)
    return [Shape(sizes)] * 2


def _find_overloads_by_rank(name: str, ranks: Sequence[int] = (1, 2, 3)) -> list[Any]:
    return [getattr(aten, name.format(rank)).default for rank in ranks]


RULES: dict[Any, Any] = {
    aten.affine_grid_generator.default: affine_grid_shape,
    **dict.fromkeys((aten.gru.input, aten.lstm.input, aten.rnn_tanh.input, aten.rnn_relu.input), recurrent_shapes),
    aten.linear.default: linear_shape,
    **dict.fromkeys((aten.matmul.default, aten.mm.default, aten.bmm.default, aten.mv.default), matmul_shape),
    **dict.fromkeys((aten.addmm.default, aten.baddbmm.default, aten.addmv.default), addmm_shape),
    **dict.fromkeys((aten.dot.default, aten.vdot.default), dot_shape),
    aten.scaled_dot_product_attention.default: attention_shape,
    aten.einsum.default: einsum_shape,
    **dict.fromkeys(_find_overloads_by_rank("conv{}d"), convolution_shape),
    **dict.fromkeys(_find_overloads_by_rank("max_pool{}d"), max_pool_shape),
    **dict.fromkeys(_find_overloads_by_rank("avg_pool{}d"), avg_pool_shape),
    **dict.fromkeys(_find_overloads_by_rank("adaptive_avg_pool{}d"), adaptive_pool_shape),
    **dict.fromkeys(_find_overloads_by_rank("adaptive_max_pool{}d"), adaptive_max_pool_shapes),
    **{getattr(aten, name).vec: resize_shape for name in RESIZING},
    **dict.fromkeys(
        (aten.sum.dim_IntList, aten.mean.dim, aten.amax.default, aten.amin.default, aten.any.dim, aten.all.dim, aten.logsumexp.default),
        reduction_shape,
    ),
    **dict.fromkeys(
        (aten.argmax.default, aten.argmin.default, aten.prod.dim_int, aten.std.correction, aten.var.correction), reduction_shape
    ),
    **dict.fromkeys((aten.std.dim, aten.var.dim), std_shape),
    **dict.fromkeys((aten.norm.ScalarOpt_dim, aten.linalg_vector_norm.default), norm_shape),
    **dict.fromkeys((aten.max.dim, aten.min.dim, aten.median.dim), reduction_shapes_with_indices),
    **dict.fromkeys(
        (getattr(aten, name).default for name in ("sum", "mean", "max", "min", "any", "all", "prod", "median")), full_reduction_shape
    ),
    aten.topk.default: topk_shapes,
}
