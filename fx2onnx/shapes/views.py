"""Shape functions of views, slicing, splitting, joining and indexing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from .sizes import (
    SLICE_END,
    DataDependentGuard,
    Shape,
    at,
    broadcast,
    floor_divide,
    is_one,
    plain,
    positive,
    product,
    quotient,
    replace_size,
    within,
)

aten = torch.ops.aten


def reshape_shape(x: Shape, shape: Sequence[Any]) -> Shape:
    """Return the requested sizes; -1 is computed by division."""
    if not any(type(size) is int and size == -1 for size in shape):
        return Shape(map(plain, shape))
    rest = product(size for size in shape if not (type(size) is int and size == -1))
    missing = quotient(product(x), rest)
    return Shape(missing if type(size) is int and size == -1 else plain(size) for size in shape)


def flatten_shape(x: Shape, start_dim: int = 0, end_dim: int = -1) -> Shape:
    """Flatten a range of axes."""
    if not x:
        return Shape([1])
    first, last = at(start_dim, len(x)), at(end_dim, len(x))
    return Shape((*x[:first], product(x[first : last + 1]), *x[last + 1 :]))


def unflatten_shape(x: Shape, dim: int, sizes: Sequence[Any]) -> Shape:
    """Split one axis into several."""
    axis = at(dim, len(x))
    return Shape((*x[:axis], *reshape_shape(Shape([x[axis]]), sizes), *x[axis + 1 :]))


def transpose_shape(x: Shape, dim0: int, dim1: int) -> Shape:
    """Swap two axes."""
    sizes = list(x)
    one, other = at(dim0, len(x)), at(dim1, len(x))
    if x:
        sizes[one], sizes[other] = sizes[other], sizes[one]
    return Shape(sizes)


def t_shape(x: Shape) -> Shape:
    """Reverse the axes."""
    return Shape(reversed(x))


def matrix_transpose_shape(x: Shape) -> Shape:
    """Swap the last two axes."""
    return transpose_shape(x, -2, -1)


def permute_shape(x: Shape, dims: Sequence[int]) -> Shape:
    """Permute the axes."""
    return Shape(x[at(axis, len(x))] for axis in dims)


def movedim_shape(x: Shape, source: Any, destination: Any) -> Shape:
    """Permute the source axes to the destination axes."""
    sources, places = ([at(axis, len(x)) for axis in ([given] if isinstance(given, int) else given)] for given in (source, destination))
    rest = iter(size for axis, size in enumerate(x) if axis not in sources)
    moved = dict(zip(places, sources, strict=True))
    return Shape(x[moved[axis]] if axis in moved else next(rest) for axis in range(len(x)))


def expand_shape(x: Shape, size: Sequence[Any], implicit: bool = False) -> Shape:
    """Expand axes of size 1; -1 keeps a size."""
    new = len(size) - len(x)
    return Shape(x[axis - new] if type(length) is int and length == -1 else plain(length) for axis, length in enumerate(size))


def unsqueeze_shape(x: Shape, dim: int) -> Shape:
    """Insert an axis of size 1."""
    axis = at(dim, len(x) + 1)
    return Shape((*x[:axis], 1, *x[axis:]))


def squeeze_shape(x: Shape, dim: Any = None) -> Shape:
    """Remove axes of size 1. Raises DataDependentGuard for a dynamic axis, which is removed only at size 1."""
    dims = range(len(x)) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = {at(axis, len(x)) for axis in dims} if x else set()
    if any(not isinstance(x[axis], int) for axis in axes):
        raise DataDependentGuard
    return Shape(size for axis, size in enumerate(x) if axis not in axes or not is_one(size))


def select_shape(x: Shape, dim: int, index: Any) -> Shape:
    """Remove an axis."""
    axis = at(dim, len(x))
    return Shape((*x[:axis], *x[axis + 1 :]))


def slice_shape(x: Shape, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Shape:
    """Slice an axis from `start` to `end`, clamped to the axis, with a step."""
    axis = at(dim, len(x))
    first, last = within(start or 0, x[axis]), within(SLICE_END if end is None else end, x[axis])
    return replace_size(x, axis, floor_divide(positive(last - first) + step - 1, step))


def narrow_shape(x: Shape, dim: int, start: Any, length: Any) -> Shape:
    """Keep `length` elements of an axis."""
    return replace_size(x, dim, length)


def diagonal_shape(x: Shape, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Shape:
    """Return the diagonal of two axes. Raises DataDependentGuard if they are dynamic."""
    one, other = at(dim1, len(x)), at(dim2, len(x))
    rows, columns = x[one], x[other]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise DataDependentGuard
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return Shape((*(size for axis, size in enumerate(x) if axis not in (one, other)), max(length, 0)))


def unbind_shapes(x: Shape, dim: int = 0) -> list[Shape]:
    """Return one tensor per element of an axis. Raises DataDependentGuard if the axis is dynamic."""
    size = x[at(dim, len(x))]
    if not isinstance(size, int):
        raise DataDependentGuard
    return [select_shape(x, dim, 0)] * size


def split_shapes(x: Shape, split_size: Any, dim: int = 0) -> list[Shape]:
    """Split an axis into parts of a given size. Raises DataDependentGuard if the number of parts is dynamic."""
    size = x[at(dim, len(x))]
    if isinstance(split_size, (list, tuple)):
        return [replace_size(x, dim, part) for part in split_size]
    if not isinstance(size, int) or not isinstance(split_size, int) or not split_size:
        raise DataDependentGuard
    return [replace_size(x, dim, min(split_size, size - begin)) for begin in range(0, max(size, 1), split_size)]


def chunk_shapes(x: Shape, chunks: int, dim: int = 0) -> list[Shape]:
    """Split an axis into at most `chunks` parts. Raises DataDependentGuard if the axis is dynamic."""
    size = x[at(dim, len(x))]
    if not isinstance(size, int) or not size:
        raise DataDependentGuard
    return split_shapes(x, -(-size // chunks), dim)


def tensor_split_shapes(x: Shape, parts: Any, dim: int = 0) -> list[Shape]:
    """Split an axis into parts of which the first are one longer than the others, or at these positions."""
    axis = at(dim, len(x))
    if isinstance(parts, int):
        return [replace_size(x, axis, floor_divide(x[axis] + parts - 1 - number, parts)) for number in range(parts)]
    if isinstance(parts, Shape):
        raise DataDependentGuard
    ends = [within(position, x[axis]) for position in (0, *parts, SLICE_END)]
    return [replace_size(x, axis, positive(end - begin)) for begin, end in pairwise(ends)]


def take_along_dim_shape(x: Shape, indices: Shape, dim: int | None = None) -> Shape:
    """Broadcast the tensors except along the axis; without an axis, return one element for each position."""
    if dim is None:
        return Shape([product(indices)])
    axis = at(dim, len(x))
    return replace_size(broadcast(replace_size(x, axis, 1), replace_size(indices, axis, 1)), axis, indices[axis])


def cat_shape(tensors: Sequence[Shape], dim: int = 0) -> Shape:
    """Concatenate tensors along an axis; torch skips those of shape (0,)."""
    tensors = [x for x in tensors if x != (0,)] or list(tensors[:1])
    axis = at(dim, len(tensors[0]))
    rest = {Shape((*x[:axis], *x[axis + 1 :])) for x in tensors}
    if len(rest) > 1:
        raise DataDependentGuard
    return replace_size(tensors[0], axis, sum(x[axis] for x in tensors))


def stack_shape(tensors: Sequence[Shape], dim: int = 0) -> Shape:
    """Stack tensors along a new axis. Raises DataDependentGuard if their shapes are not certainly equal."""
    if len(set(tensors)) > 1:
        raise DataDependentGuard
    axis = at(dim, len(tensors[0]) + 1)
    return Shape((*tensors[0][:axis], len(tensors), *tensors[0][axis:]))


def repeat_shape(x: Shape, repeats: Sequence[Any]) -> Shape:
    """Repeat a tensor along each axis."""
    own = (*(1,) * (len(repeats) - len(x)), *x)
    return Shape(plain(size * times) for size, times in zip(own, repeats, strict=True))


def tile_shape(x: Shape, dims: Sequence[Any]) -> Shape:
    """Repeat a tensor along its last axes, or along new ones."""
    return repeat_shape(x, (*(1,) * (len(x) - len(dims)), *dims))


def pad_shape(x: Shape, pad: Sequence[Any], *_: Any, **__: Any) -> Shape:
    """Add elements before and after, the last axis first."""
    sizes = list(x)
    for number in range(len(pad) // 2):
        sizes[-1 - number] = plain(sizes[-1 - number] + pad[2 * number] + pad[2 * number + 1])
    return Shape(sizes)


def index_select_shape(x: Shape, dim: int, index: Shape) -> Shape:
    """Select elements of an axis by index."""
    return replace_size(x, dim, product(index)) if x else x


def index_shape(x: Shape, indices: Sequence[Shape | None]) -> Shape:
    """Advanced indexing: adjacent indexed axes are replaced in position; otherwise the result axes come first."""
    given = [axis for axis, index in enumerate(indices) if index is not None]
    positions = broadcast(*(index for index in indices if index is not None))
    rest = [size for axis, size in enumerate(x) if axis not in given]
    place = given[0] if given[-1] - given[0] + 1 == len(given) else 0
    return Shape((*rest[:place], *positions, *rest[place:]))


def embedding_shape(weight: Shape, indices: Shape, *_: Any, **__: Any) -> Shape:
    """Return one row of the weight per index."""
    return Shape((*indices, *weight[1:]))


def gather_shape(x: Shape, dim: int, index: Shape, **_: Any) -> Shape:
    """Return the shape of the index."""
    return Shape(index)


RULES: dict[Any, Any] = {
    **dict.fromkeys((aten.reshape.default, aten.view.default, aten._unsafe_view.default), reshape_shape),
    aten.flatten.using_ints: flatten_shape,
    aten.unflatten.int: unflatten_shape,
    **dict.fromkeys((aten.transpose.int, aten.swapaxes.default, aten.swapdims.default), transpose_shape),
    **dict.fromkeys((aten.t.default, aten.numpy_T.default), t_shape),
    **dict.fromkeys((aten.mT.default, aten.adjoint.default), matrix_transpose_shape),
    aten.permute.default: permute_shape,
    **dict.fromkeys((aten.movedim.int, aten.movedim.intlist, aten.moveaxis.int), movedim_shape),
    **dict.fromkeys((aten.expand.default, aten.broadcast_to.default), expand_shape),
    **dict.fromkeys((aten.expand_as.default, aten.view_as.default, aten.reshape_as.default), lambda x, other: Shape(other)),
    aten.unsqueeze.default: unsqueeze_shape,
    **dict.fromkeys((aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims), squeeze_shape),
    aten.select.int: select_shape,
    aten.slice.Tensor: slice_shape,
    aten.narrow.default: narrow_shape,
    aten.diagonal.default: diagonal_shape,
    aten.unbind.int: unbind_shapes,
    **dict.fromkeys((aten.split.Tensor, aten.split.sizes, aten.split_with_sizes.default), split_shapes),
    aten.chunk.default: chunk_shapes,
    **dict.fromkeys((aten.tensor_split.sections, aten.tensor_split.indices), tensor_split_shapes),
    aten.take_along_dim.default: take_along_dim_shape,
    **dict.fromkeys((aten.cat.default, aten.concat.default, aten.concatenate.default), cat_shape),
    aten.stack.default: stack_shape,
    aten.repeat.default: repeat_shape,
    aten.tile.default: tile_shape,
    **dict.fromkeys((aten.pad.default, aten.constant_pad_nd.default), pad_shape),
    aten.index_select.default: index_select_shape,
    aten.index.Tensor: index_shape,
    aten.embedding.default: embedding_shape,
    aten.gather.default: gather_shape,
}
