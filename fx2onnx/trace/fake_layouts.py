"""Layouts of the results of common calls on tensors without values. FakeTensor needs up to two milliseconds for one of these calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

import torch

aten = torch.ops.aten
Shape: TypeAlias = Sequence[int]


def layout_of_result(func: Any, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """Return a meta tensor in the layout of the new tensor that a call returns, or None if no rule covers the call.

    The rules cover tensors of one floating dtype on one device, which are contiguous, except for products of matrices. The result has that
    dtype and is contiguous.

    Args:
        leaves: those of the arguments.
    """
    rule = SHAPES.get(func)
    if rule is None or (kwargs and func not in POINTWISE):
        return None
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if any(isinstance(leaf, complex) for leaf in leaves) or not _are_uniform(tensors):
        return None
    if func not in CONTIGUOUS_ALWAYS and not all(tensor.is_contiguous() for tensor in tensors):
        return None
    shape = rule(*args)
    return None if shape is None else torch.empty(shape, dtype=tensors[0].dtype, device="meta")


def _are_uniform(tensors: Sequence[torch.Tensor]) -> bool:
    first = tensors[0]
    return first.is_floating_point() and all(tensor.dtype == first.dtype and tensor.device == first.device for tensor in tensors)


def _keep_shape(x: torch.Tensor, *_: Any) -> Shape:
    return x.shape


def _broadcast(*args: Any) -> Shape | None:
    shapes = {arg.shape for arg in args if isinstance(arg, torch.Tensor)}
    if len(shapes) == 1:
        return shapes.pop()
    axes = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    sizes = [{size for size in axis if size != 1} or {1} for axis in axes]
    return [size for (size,) in reversed(sizes)] if all(len(axis) == 1 for axis in sizes) else None


def _linear(x: torch.Tensor, weight: torch.Tensor, *_: Any) -> Shape | None:
    return (*x.shape[:-1], weight.shape[0]) if weight.dim() == 2 and x.dim() and x.shape[-1] == weight.shape[1] else None


def _matmul(a: torch.Tensor, b: torch.Tensor) -> Shape | None:
    """Return the shape for matrices and batches of them. With more axes in `b` than in `a`, torch may return a transposed tensor."""
    if not a.dim() >= b.dim() >= 2 or a.shape[-1] != b.shape[-2] or (b.dim() > 2 and a.shape[:-2] != b.shape[:-2]):
        return None
    return *a.shape[:-1], b.shape[-1]


def _convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: Any = None,
    stride: Shape = (1,),
    padding: Shape = (0,),
    dilation: Shape = (1,),
    groups: int = 1,
) -> Shape | None:
    """Return the shape for a batch, by the formula in the documentation of `torch.nn.Conv2d`."""
    axes = weight.dim() - 2
    if x.dim() != weight.dim() or x.shape[1] != weight.shape[1] * groups:
        return None
    strides, paddings, dilations = (_one_per_axis(value, axes) for value in (stride, padding, dilation))
    windows = [
        (size + 2 * pad - step * (kernel - 1) - 1) // by + 1
        for size, kernel, by, pad, step in zip(x.shape[2:], weight.shape[2:], strides, paddings, dilations, strict=True)
    ]
    return (x.shape[0], weight.shape[0], *windows) if min(windows) > 0 else None


def _one_per_axis(values: Sequence[int], axes: int) -> Sequence[int]:
    return [*values] * (axes // len(values))


def _batch_norm(x: torch.Tensor, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, *_: Any) -> Shape | None:
    return None if training else x.shape


def _softmax(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Shape | None:
    return x.shape if dtype in (None, x.dtype) else None


def _mean(x: torch.Tensor, dims: Sequence[int] | None, keepdim: bool = False) -> Shape | None:
    if not dims or not x.dim():
        return None
    reduced = {dim % x.dim() for dim in dims}
    return [1 if axis in reduced else size for axis, size in enumerate(x.shape) if keepdim or axis not in reduced]


def _cat(tensors: Sequence[torch.Tensor], dim: int = 0) -> Shape | None:
    first = tensors[0]
    if not first.dim():
        return None
    axis = dim % first.dim()
    rest = {(*tensor.shape[:axis], *tensor.shape[axis + 1 :]) for tensor in tensors if tensor.dim() == first.dim()}
    if len(rest) != 1 or any(tensor.dim() != first.dim() for tensor in tensors):
        return None
    return *first.shape[:axis], sum(tensor.shape[axis] for tensor in tensors), *first.shape[axis + 1 :]


POINTWISE = (
    *(aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.pow.Tensor_Scalar),
    *(aten.neg.default, aten.exp.default, aten.sqrt.default, aten.rsqrt.default, aten.cos.default, aten.sin.default),
    *(aten.relu.default, aten.gelu.default, aten.silu.default, aten.sigmoid.default, aten.tanh.default, aten.erf.default),
)
CONTIGUOUS_ALWAYS = (aten.linear.default, aten.matmul.default)
SHAPES: Mapping[Any, Callable[..., Shape | None]] = {
    **dict.fromkeys(POINTWISE, _broadcast),
    aten.linear.default: _linear,
    aten.matmul.default: _matmul,
    **dict.fromkeys((aten.conv1d.default, aten.conv2d.default, aten.conv3d.default), _convolution),
    aten.batch_norm.default: _batch_norm,
    aten.layer_norm.default: _keep_shape,
    aten.softmax.int: _softmax,
    aten.mean.dim: _mean,
    aten.cat.default: _cat,
}
