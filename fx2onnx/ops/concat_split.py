"""Joining and splitting tensors: cat, stack, split, repeat, grids. Slices are in shape.py, computed positions in index.py."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..compat.operators import aten
from ..compat.symbols import FloorDiv
from ..ir.dtypes import INT64
from ..ir.expressions import Size, sizes_of
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .create import make_full, make_range
from .shape import END, expand_to, select


@translates(aten.cat.default, aten.concat.default, aten.concatenate.default)
def cat(g: Graph, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """cat(tensors, dim) → Concat; nothing for a single tensor. Empty tensors with one axis are ignored, as in torch."""
    parts = [tensor for tensor in g.promote(*tensors) if tensor.known_sizes != (0,) or len(g.sizes) == 1]
    return parts[0] if len(parts) == 1 else g.Concat(*parts, axis=dim)


@translates(aten.stack.default)
def stack(g: Graph, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """stack(tensors, dim) → Unsqueeze each, and Concat."""
    return cat(g, [g.Unsqueeze(tensor, [dim]) for tensor in tensors], dim)


def unsqueeze_to_rank(g: Graph, x: Tensor, rank: int) -> Tensor:
    """Return the tensor with at least this many axes: for 1 and 2 new axes are in front, for 3 as in `torch.atleast_3d`."""
    missing = {1: [0], 2: [0, 1], 3: [0, 1, 2]}[rank][: rank - x.rank] if x.rank < rank else []
    if rank == 3 and x.rank:
        missing = [0, 2][2 - len(missing) :]
    if not missing:
        return x
    sizes = list(x.sizes)
    for axis in missing:
        sizes.insert(axis, 1)
    return g.set_sizes(g.Unsqueeze(x, missing), sizes)


@translates(aten.hstack.default)
def hstack(g: Graph, tensors: Sequence[Tensor]) -> Tensor:
    """hstack(tensors) → Concat along the second axis, or the only one."""
    parts = [unsqueeze_to_rank(g, tensor, 1) for tensor in tensors]
    return cat(g, parts, 0 if parts[0].rank == 1 else 1)


@translates(aten.vstack.default, aten.row_stack.default)
def vstack(g: Graph, tensors: Sequence[Tensor]) -> Tensor:
    """vstack(tensors) → Unsqueeze those with less than two axes, and Concat along the first."""
    return cat(g, [unsqueeze_to_rank(g, tensor, 2) for tensor in tensors], 0)


@translates(aten.dstack.default)
def dstack(g: Graph, tensors: Sequence[Tensor]) -> Tensor:
    """dstack(tensors) → Unsqueeze those with less than three axes, and Concat along the third."""
    return cat(g, [unsqueeze_to_rank(g, tensor, 3) for tensor in tensors], 2)


@translates(aten.column_stack.default)
def column_stack(g: Graph, tensors: Sequence[Tensor]) -> Tensor:
    """column_stack(tensors) → tensors with one axis as columns, and Concat along the second axis."""
    return cat(g, [tensor if tensor.rank >= 2 else g.Unsqueeze(tensor, [1] if tensor.rank else [0, 1]) for tensor in tensors], 1)


def parts_along(g: Graph, x: Tensor, dim: int) -> list[Tensor]:
    """Append Split into the captured sizes; return the tensor itself if there is only one part."""
    sizes = [sizes_of(g.result(i))[dim] for i in range(len(g.at.meta["val"]))]
    made = [x] if len(sizes) == 1 else g.Split(x, sizes, axis=dim, outputs=len(sizes))
    return list(made)


@translates(
    aten.split.Tensor, aten.split.sizes, aten.split_with_sizes.default, aten.chunk.default,
    aten.unsafe_split.Tensor, aten.unsafe_split_with_sizes.default, aten.unsafe_chunk.default,
    aten.split_copy.Tensor, aten.split_with_sizes_copy.default,
)  # fmt: skip
def split(g: Graph, x: Tensor, _: object, dim: int = 0) -> list[Tensor]:
    """split(x, size, dim), chunk(x, n, dim) → Split."""
    return parts_along(g, x, dim)


@translates(aten.tensor_split.sections)
def split_evenly(g: Graph, x: Tensor, sections: int, dim: int = 0) -> list[Tensor]:
    """tensor_split(x, n, dim) → Split into n parts, the first of which may have one more element; nothing for n = 1."""
    sizes = [_floor_div(x.sizes[dim] + sections - 1 - i, sections) for i in range(sections)]
    return [x] if sections == 1 else list(g.Split(x, sizes, axis=dim, outputs=sections))


def _floor_div(size: Size, number: int) -> Size:
    return size // number if isinstance(size, int) else FloorDiv(size, number)


@translates(aten.hsplit.int)
def hsplit(g: Graph, x: Tensor, sections: int) -> list[Tensor]:
    """hsplit(x, n) → Split along the second axis, or the only one."""
    return parts_along(g, x, min(x.rank - 1, 1))


@translates(aten.vsplit.int)
def vsplit(g: Graph, x: Tensor, sections: int) -> list[Tensor]:
    """vsplit(x, n) → Split along the first axis."""
    return parts_along(g, x, 0)


@translates(aten.dsplit.int)
def dsplit(g: Graph, x: Tensor, sections: int) -> list[Tensor]:
    """dsplit(x, n) → Split along the third axis."""
    return parts_along(g, x, 2)


@translates(aten.tensor_split.indices)
def split_at(g: Graph, x: Tensor, indices: Sequence[Size], dim: int = 0) -> list[Tensor]:
    """tensor_split(x, indices, dim) → a Slice from each index to the next; they may be any indices that a slice accepts."""
    bounds = [0, *indices, END]
    return [g.Slice(x, [start], [end], [dim]) for start, end in pairwise(bounds)]


@translates(aten.hsplit.array)
def hsplit_at(g: Graph, x: Tensor, indices: Sequence[Size]) -> list[Tensor]:
    """hsplit(x, indices) → Slices along the second axis, or the only one."""
    return split_at(g, x, indices, min(x.rank - 1, 1))


@translates(aten.vsplit.array)
def vsplit_at(g: Graph, x: Tensor, indices: Sequence[Size]) -> list[Tensor]:
    """vsplit(x, indices) → Slices along the first axis."""
    return split_at(g, x, indices, 0)


@translates(aten.dsplit.array)
def dsplit_at(g: Graph, x: Tensor, indices: Sequence[Size]) -> list[Tensor]:
    """dsplit(x, indices) → Slices along the third axis."""
    return split_at(g, x, indices, 2)


@translates(aten.unbind.int, aten.unbind_copy.int)
def unbind(g: Graph, x: Tensor, dim: int = 0) -> list[Tensor]:
    """unbind(x, dim) → a Gather for each position."""
    return [select(g, x, dim, i) for i in range(len(g.at.meta["val"]))]


@translates(aten.repeat.default, aten.tile.default)
def repeat(g: Graph, x: Tensor, repeats: Sequence[Size]) -> Tensor:
    """repeat(x, repeats), tile(x, repeats) → Unsqueeze for further axes, and Tile; nothing if all repeats are 1."""
    further = len(repeats) - x.rank
    x = g.Unsqueeze(x, list(range(further))) if further > 0 else x
    return x if all(times == 1 for times in repeats) else g.Tile(x, [*[1] * -further, *repeats])


@translates(aten.repeat_interleave.self_int)
def repeat_interleave(g: Graph, x: Tensor, repeats: Size, dim: int | None = None, output_size: Size | None = None) -> Tensor:
    """repeat_interleave(x, n, dim) → Unsqueeze, Expand, Reshape."""
    if repeats == 1:
        return g.reshape_to(x, g.sizes)
    axis = x.rank if dim is None else dim % max(x.rank, 1) + 1 if x.rank else 0
    sizes = list(x.sizes)
    lengthened = g.set_sizes(g.Unsqueeze(x, [axis]), [*sizes[:axis], 1, *sizes[axis:]])
    return g.reshape_to(expand_to(g, lengthened, (*sizes[:axis], repeats, *sizes[axis:])), g.sizes)


@translates(aten.repeat_interleave.self_Tensor)
def repeat_interleave_each(g: Graph, x: Tensor, repeats: Tensor, dim: int | None = None, output_size: Size | None = None) -> Tensor:
    """repeat_interleave(x, repeats, dim) → Gather of each position as often as it is repeated."""
    if dim is None:
        count: Size = 1
        for size in x.sizes:
            count *= size
        x, dim = g.set_sizes(g.reshape_to(x, (count,)), (count,)), 0
    x = unsqueeze_to_rank(g, x, 1)
    return g.Gather(x, repeated_positions(g, repeats, x.sizes[dim]), axis=dim)


@translates(aten.repeat_interleave.Tensor)
def repeat_interleave_positions(g: Graph, repeats: Tensor, output_size: Size | None = None) -> Tensor:
    """repeat_interleave(repeats) → each position as often as it is repeated."""
    return repeated_positions(g, repeats, repeats.sizes[0])


def repeated_positions(g: Graph, repeats: Tensor, count: Size) -> Tensor:
    """Return 0, 1, …, count − 1, each repeated: CumSum of a tensor that has a 1 added where each number starts."""
    repeats = g.cast(repeats, INT64)
    if repeats.known_sizes != (count,):
        repeats = g.Expand(repeats, [count])
    ends = g.CumSum(repeats, g.const(0, INT64))
    total = g.ReduceSum(repeats, [0])
    begun = g.ScatterElements(
        g.Expand(g.const(0, INT64), g.Add(total, 1)), g.Sub(ends, repeats), make_full(g, [count], 1, INT64), axis=0, reduction="add"
    )
    return g.Sub(g.CumSum(g.Slice(begun, [0], total, [0]), g.const(0, INT64)), 1)


@translates(aten.meshgrid.default, aten.meshgrid.indexing)
def meshgrid(g: Graph, tensors: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """meshgrid(tensors, indexing) → Unsqueeze each along its axis, and Expand."""
    axes = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        axes[:2] = [1, 0]
    made = []
    for tensor, axis in zip(tensors, axes, strict=True):
        sizes = [1] * len(tensors)
        sizes[axis] = tensor.sizes[0] if tensor.rank else 1
        others = [i for i in range(len(tensors)) if tensor.rank == 0 or i != axis]
        along = g.set_sizes(g.Unsqueeze(tensor, others), sizes) if others else tensor
        made.append(expand_to(g, along, g.sizes))
    return made


@translates(aten.broadcast_tensors.default)
def broadcast_tensors(g: Graph, tensors: Sequence[Tensor]) -> list[Tensor]:
    """broadcast_tensors(tensors) → Expand each; nothing for tensors that already have the common sizes."""
    return [expand_to(g, tensor, g.sizes) for tensor in tensors]


@translates(aten.cartesian_prod.default)
def cartesian_prod(g: Graph, tensors: Sequence[Tensor]) -> Tensor:
    """cartesian_prod(tensors) → each along its axis, Expand, Reshape, and Concat as columns."""
    if len(tensors) == 1:
        return tensors[0]
    lengths = [tensor.sizes[0] for tensor in tensors]
    columns = []
    for i, tensor in enumerate(tensors):
        others = [axis for axis in range(len(tensors)) if axis != i]
        along = g.set_sizes(g.Unsqueeze(tensor, others), [1 if axis in others else lengths[axis] for axis in range(len(tensors))])
        columns.append(g.reshape_to(expand_to(g, along, lengths), (g.sizes[0], 1)))
    return g.Concat(*columns, axis=1)


@translates(aten.block_diag.default)
def block_diag(g: Graph, tensors: Sequence[Tensor]) -> Tensor:
    """block_diag(matrices) → Pad each with zeros to the full width, and Concat."""
    blocks, before, rows = [unsqueeze_to_rank(g, tensor, 2) for tensor in g.promote(*tensors)], 0, []
    for block in blocks:
        after = g.sizes[1] - before - block.sizes[1]
        rows.append(g.Pad(block, [0, before, 0, after]))
        before += block.sizes[1]
    return rows[0] if len(rows) == 1 else g.Concat(*rows, axis=0)


@translates(aten.vander.default)
def vander(g: Graph, x: Tensor, N: Size | None = None, increasing: bool = False) -> Tensor:
    """vander(x, n, increasing) → Pow with 0, 1, … or n − 1, …, 1, 0."""
    count = g.sizes[1]
    powers = make_range(g, count) if increasing else make_range(g, count, count - 1, -1)
    return g.Pow(g.Unsqueeze(g.cast(x, g.dtype), [1]), powers)
