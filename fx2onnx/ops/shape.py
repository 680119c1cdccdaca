"""Operators that only rearrange elements: views, slices, expansion, diagonals. Joining and splitting are in concat_split.py."""

from __future__ import annotations

from collections.abc import Sequence

from ..compat.operators import aten
from ..ir.dtypes import BOOL, INT64
from ..ir.expressions import Size, sizes_of
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .create import identity, make_full, make_range

END = 2**63 - 1


@translates(
    aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.view_as.default, aten.reshape_as.default, aten.ravel.default,
    aten.flatten.using_ints, aten.unflatten.int, aten.atleast_1d.default, aten.atleast_2d.default, aten.atleast_3d.default,
    aten.view_copy.default, aten._reshape_copy.default, aten._reshape_alias.default,
)  # fmt: skip
def reshape(g: Graph, x: Tensor, *_: object) -> Tensor:
    """view(x, size), flatten(x, …), atleast_2d(x), … → Reshape to the captured sizes; nothing if they are the same."""
    return g.reshape_to(x, g.sizes)


@translates(aten.atleast_1d.Sequence, aten.atleast_2d.Sequence, aten.atleast_3d.Sequence)
def reshape_each(g: Graph, tensors: Sequence[Tensor]) -> list[Tensor]:
    """atleast_2d(tensors), … → Reshape each."""
    return [g.reshape_to(x, sizes_of(g.result(i))) for i, x in enumerate(tensors)]


@translates(aten.unsqueeze.default, aten.unsqueeze_copy.default)
def unsqueeze(g: Graph, x: Tensor, dim: int) -> Tensor:
    """unsqueeze(x, dim) → Unsqueeze."""
    return g.Unsqueeze(x, [dim])


@translates(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze_copy.default, aten.squeeze_copy.dim)
def squeeze(g: Graph, x: Tensor, dims: int | Sequence[int] | None = None) -> Tensor:
    """squeeze(x, dims) → Squeeze of the axes that have one element in the capture, if any."""
    wanted = range(x.rank) if dims is None else [dims] if isinstance(dims, int) else dims
    axes = sorted({dim % x.rank for dim in wanted if x.sizes[dim] == 1}) if x.rank else []
    return g.Squeeze(x, axes) if axes else x


@translates(aten.slice.Tensor)
def slice_(g: Graph, x: Tensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1) -> Tensor:
    """slice(x, dim, start, end, step) → Slice; nothing if it covers the whole axis."""
    if x.known_sizes == g.sizes and step == 1:
        return x
    return g.Slice(x, [start or 0], [END if end is None else end], [dim], [step])


@translates(aten.narrow.default)
def narrow(g: Graph, x: Tensor, dim: int, start: Size, length: Size) -> Tensor:
    """narrow(x, dim, start, length) → Slice; nothing if it covers the whole axis."""
    if x.known_sizes == g.sizes:
        return x
    if isinstance(start, int):
        start = start if start >= 0 else start + x.sizes[dim]
        return g.Slice(x, [start], [start + length], [dim])
    begin = g.ints([start])
    begin = g.Where(g.Less(begin, 0), g.Add(begin, g.ints([x.sizes[dim]])), begin)
    return g.Slice(x, begin, g.Add(begin, g.ints([length])), [dim])


@translates(aten.select.int, aten.select_copy.int)
def select(g: Graph, x: Tensor, dim: int, index: Size) -> Tensor:
    """select(x, dim, index) → Gather with an index without axes, which may be negative."""
    return g.Gather(x, g.scalar(index, INT64), axis=dim)


def permute_axes(g: Graph, x: Tensor, order: Sequence[int]) -> Tensor:
    """Append Transpose, with the known sizes; nothing for the same order."""
    if list(order) == sorted(order):
        return x
    made = g.Transpose(x, perm=list(order))
    return g.set_sizes(made, [x.sizes[i] for i in order]) if x.known_sizes is not None else made


def inverse(order: Sequence[int]) -> list[int]:
    """Return the inverse of this order."""
    return [list(order).index(i) for i in range(len(order))]


@translates(aten.permute.default, aten.permute_copy.default)
def permute(g: Graph, x: Tensor, dims: Sequence[int]) -> Tensor:
    """permute(x, dims) → Transpose; nothing for the same order."""
    return permute_axes(g, x, [dim % x.rank for dim in dims])


@translates(aten.transpose.int, aten.transpose_copy.int, aten.swapaxes.default, aten.swapdims.default)
def transpose(g: Graph, x: Tensor, dim0: int, dim1: int) -> Tensor:
    """transpose(x, i, j) → Transpose."""
    order = list(range(x.rank))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute_axes(g, x, order)


@translates(aten.t.default, aten.t_copy.default, aten.mT.default, aten.mH.default, aten.adjoint.default, aten.matrix_H.default)
def transpose_last(g: Graph, x: Tensor) -> Tensor:
    """t(x), mT(x) and, for real numbers, mH(x), adjoint(x), H(x) → Transpose of the last two axes."""
    return transpose(g, x, -2, -1) if x.rank >= 2 else x


@translates(aten.numpy_T.default)
def reverse_axes(g: Graph, x: Tensor) -> Tensor:
    """T(x) → Transpose with all axes reversed."""
    return permute_axes(g, x, range(x.rank)[::-1])


@translates(aten.movedim.int, aten.movedim.intlist, aten.moveaxis.int, aten.moveaxis.intlist)
def movedim(g: Graph, x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """movedim(x, source, destination) → Transpose."""
    if x.rank == 0:
        return x
    sources, destinations = ([dims] if isinstance(dims, int) else dims for dims in (source, destination))
    moved = {to % x.rank: of % x.rank for of, to in zip(sources, destinations, strict=True)}
    rest = iter([axis for axis in range(x.rank) if axis not in moved.values()])
    return permute_axes(g, x, [moved[axis] if axis in moved else next(rest) for axis in range(x.rank)])


def expand_to(g: Graph, x: Tensor, sizes: Sequence[Size]) -> Tensor:
    """Append Expand, with 1 for axes whose size does not change, which needs no shape; nothing if none changes."""
    if x.known_sizes == tuple(sizes):
        return x
    if 0 in sizes:  # ONNX Runtime removes an Expand of an axis of one element to an empty axis
        return make_full(g, sizes, 0, x.dtype)
    kept = [None] * (len(sizes) - x.rank) + list(x.sizes)
    return g.set_sizes(g.Expand(x, [1 if before == size else size for before, size in zip(kept, sizes, strict=True)]), sizes)


@translates(aten.expand.default, aten.expand_as.default, aten.broadcast_to.default, aten.expand_copy.default)
def expand(g: Graph, x: Tensor, *_: object, implicit: bool = False) -> Tensor:
    """expand(x, size) → Expand to the captured sizes; nothing if they are the same."""
    return expand_to(g, x, g.sizes)


@translates(aten.flip.default)
def flip(g: Graph, x: Tensor, dims: Sequence[int]) -> Tensor:
    """flip(x, dims) → Slice with steps of −1."""
    if x.rank == 0 or not dims:
        return x
    ones = [1] * len(dims)
    made = g.Slice(x, [-n for n in ones], [-END for _ in ones], list(dims), [-n for n in ones])
    return g.set_sizes(made, x.sizes)


@translates(aten.flipud.default)
def flipud(g: Graph, x: Tensor) -> Tensor:
    """flipud(x) → Slice with steps of −1 along the first axis."""
    return flip(g, x, [0])


@translates(aten.fliplr.default)
def fliplr(g: Graph, x: Tensor) -> Tensor:
    """fliplr(x) → Slice with steps of −1 along the second axis."""
    return flip(g, x, [1])


@translates(aten.rot90.default)
def rot90(g: Graph, x: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """rot90(x, k, dims) → Slice with steps of −1, and Transpose for odd k."""
    k %= 4
    flipped = flip(g, x, {0: (), 1: dims[1:], 2: dims, 3: dims[:1]}[k])
    return transpose(g, flipped, *dims) if k % 2 else flipped


@translates(aten.roll.default)
def roll(g: Graph, x: Tensor, shifts: Sequence[Size], dims: Sequence[int] = ()) -> Tensor:
    """roll(x, shifts, dims) → Concat of two Slices for each axis; on the flattened tensor without dims."""
    if not dims:
        count = 1
        for size in x.sizes:
            count *= size
        return g.reshape_to(_roll_axis(g, g.reshape_to(x, (count,)), shifts[0], 0, count), x.sizes)
    for shift, dim in zip(shifts, dims, strict=True) if x.rank else ():
        x = g.set_sizes(_roll_axis(g, x, shift, dim, x.sizes[dim]), x.sizes)
    return x


def _roll_axis(g: Graph, x: Tensor, shift: Size, dim: int, size: Size) -> Tensor:
    if isinstance(shift, int) and (shift == 0 or isinstance(size, int)):
        if size == 0 or shift % size == 0:
            return x
        back = g.ints([-(shift % size)])
    else:
        back = g.Neg(g.Mod(g.ints([shift]), g.Max(g.ints([size]), 1)))
    return g.Concat(g.Slice(x, back, [END], [dim]), g.Slice(x, [0], back, [dim]), axis=dim)


@translates(aten.unfold.default, aten.unfold_copy.default)
def unfold(g: Graph, x: Tensor, dimension: int, size: Size, step: Size) -> Tensor:
    """unfold(x, dim, size, step) → Gather with a matrix of positions, whose second axis becomes the last."""
    if x.rank == 0:
        return g.Slice(g.Unsqueeze(x, [0]), [0], [size], [0])
    axis = dimension % x.rank
    starts, within = make_range(g, g.sizes[axis], 0, step), make_range(g, size)
    windows = g.Gather(x, g.Add(g.Unsqueeze(starts, [1]), within), axis=axis)
    order = list(range(x.rank + 1))
    order.append(order.pop(axis + 1))
    return permute_axes(g, windows, order)


def diagonal_order(x: Tensor, dim1: int, dim2: int) -> list[int]:
    """Return the order of axes with these two last."""
    ends = [dim1 % x.rank, dim2 % x.rank]
    return [axis for axis in range(x.rank) if axis not in ends] + ends


def diagonal_start(offset: Size, columns: Size) -> Size:
    """Return where a diagonal starts in the flattened matrix."""
    return offset if not isinstance(offset, int) or offset >= 0 else -offset * columns


@translates(aten.diagonal.default, aten.diagonal_copy.default)
def take_diagonal(g: Graph, x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """diagonal(x, offset, dim1, dim2) → Slice of the flattened matrix, with a step of one row and one column."""
    x = permute_axes(g, x, diagonal_order(x, dim1, dim2))
    *rest, rows, columns = x.sizes
    start = diagonal_start(offset, columns)
    end = start + g.sizes[-1] * (columns + 1)
    return g.Slice(g.reshape_to(x, (*rest, rows * columns)), [start], [end], [-1], [columns + 1])


@translates(aten.diag_embed.default)
def diag_embed(g: Graph, x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """diag_embed(x, offset, dim1, dim2) → Where with the identity: x as a row on the diagonal, 0 elsewhere."""
    size = x.sizes[-1] + abs(offset)
    row = g.Pad(x, [*[0] * (x.rank - 1), max(offset, 0), *[0] * (x.rank - 1), max(-offset, 0)]) if offset else x
    on = identity(g, size, size, BOOL, offset)
    matrix = g.set_sizes(g.Where(on, g.Unsqueeze(row, [-2]), g.const(0, x.dtype)), [*x.sizes[:-1], size, size])
    return permute_axes(g, matrix, inverse(diagonal_order(matrix, dim1, dim2)))


@translates(aten.diag.default)
def diag(g: Graph, x: Tensor, diagonal: int = 0) -> Tensor:
    """diag(x, k) → the diagonal of a matrix, or the matrix of a diagonal."""
    return diag_embed(g, x, diagonal) if x.rank == 1 else take_diagonal(g, x, diagonal)


@translates(aten.diagflat.default)
def diagflat(g: Graph, x: Tensor, offset: int = 0) -> Tensor:
    """diagflat(x, k) → the matrix whose diagonal is the flattened x."""
    count = 1
    for size in x.sizes:
        count *= size
    return diag_embed(g, g.set_sizes(g.reshape_to(x, (count,)), (count,)), offset)


@translates(aten.tril.default)
def tril(g: Graph, x: Tensor, diagonal: Size = 0) -> Tensor:
    """tril(x, k) → Trilu."""
    return g.Trilu(x, g.scalar(diagonal, INT64), upper=0)


@translates(aten.triu.default)
def triu(g: Graph, x: Tensor, diagonal: Size = 0) -> Tensor:
    """triu(x, k) → Trilu."""
    return g.Trilu(x, g.scalar(diagonal, INT64), upper=1)
