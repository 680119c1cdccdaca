"""Reading elements at computed positions: index, gather, masks, embeddings, nonzero. Writing them is in scatter.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

import onnx_ir as ir
import sympy

from ..compat.operators import aten
from ..ir.dtypes import BOOL, FLOAT, INT32, INT64, UINT8
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..passes.graph_patterns import number, producer_of, whole_numbers
from ..translate.registry import translates
from .create import make_full
from .shape import END, expand_to, inverse, permute_axes

INDEX_TYPES = (INT32, INT64)
SEEN_BY_NONZERO = (BOOL, FLOAT, INT32, INT64, UINT8)


def numel(sizes: Sequence[Size]) -> Size:
    """Return the number of elements."""
    return math.prod(sizes)


def positions(g: Graph, index: Tensor) -> Tensor:
    """Return an index tensor in a dtype that ONNX operators accept."""
    return index if index.dtype in INDEX_TYPES else g.cast(index, INT64)


def true_at(g: Graph, x: Tensor) -> Tensor:
    """Append NonZero: (rank of x, number of nonzero elements), a row of positions for each axis."""
    return g.NonZero(x if x.dtype in SEEN_BY_NONZERO else g.cast(x, BOOL))


def is_mask(index: Tensor | None) -> TypeGuard[Tensor]:
    """Return whether an index is a mask: torch accepts uint8 as booleans here."""
    return index is not None and index.dtype in (BOOL, UINT8)


def sole_mask(x: Tensor, indices: Sequence[Tensor | None]) -> tuple[int, Tensor] | None:
    """Return the axis and the mask if the only index is a mask."""
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    return given[0] if len(given) == 1 and is_mask(given[0][1]) else None


class Positions:
    """The positions of an index with several tensors: one tensor for each indexed axis, with masks converted.

    The result of x[index] is (*shape, *axes without an index). But if the indexed axes are adjacent, `shape` replaces them, as in NumPy:
    (*before, *shape, *after). With x (a, b, c, d), x[:, i, j] is (a, *shape, d), and x[i, :, j] is (*shape, b, d).

    Attributes:
        axes: the indexed axes of x.
        tensors: the positions along each of them, int32 or int64, which broadcast to `shape`; those of a mask are (number of true,).
        before: the axes of x before `shape`; empty if the indexed axes are not adjacent.
        rest: all axes of x without an index.
        rank: the number of axes of `shape`.
    """

    def __init__(self, g: Graph, x: Tensor, indices: Sequence[Tensor | None]) -> None:
        found: dict[int, Tensor] = {}
        axis = 0
        for index in indices:
            rows = _rows(g, index, axis) if is_mask(index) else [index]
            found |= {axis + i: positions(g, row) for i, row in enumerate(rows) if row is not None}
            axis += len(rows)
        self.axes = list(found)
        self.tensors = list(found.values())
        self.before = [i for i in range(x.rank) if i not in found and i < self.axes[0]] if self._together() else []
        self.rest = [i for i in range(x.rank) if i not in found]
        self.rank = max(tensor.rank for tensor in self.tensors)

    def _together(self) -> bool:
        return self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes)))

    def shape(self) -> tuple[Size, ...] | None:
        """Return the sizes that all index tensors are broadcast to, if they are known."""
        return None if any(map(_comes_of_mask, self.tensors)) else broadcast_sizes(self.tensors)

    def matrix(self, g: Graph) -> Tensor:
        """Return the positions for GatherND and ScatterND: (*shape, indexed axes), with the positions of one element along the last axis.

        Each Where sets one column and broadcasts the tensors, so that no node computes `shape`.
        """
        columns = [g.Unsqueeze(g.cast(tensor, INT64), [-1]) for tensor in self.tensors]
        matrix = columns[0]
        for axis, column in enumerate(columns[1:], 1):
            matrix = g.Where(g.const([i == axis for i in range(len(columns))], BOOL), column, matrix)
        return matrix

    def whole_axes(self, x: Tensor) -> list[int] | None:
        """Return the axis of `shape` along which each tensor is a range over its axis of x; None unless these are distinct axes."""
        columns = []
        for axis, tensor in zip(self.axes, self.tensors, strict=True):
            counts = counted_along(tensor)
            if True not in counts or tensor.sizes[counts.index(True)] != x.sizes[axis]:
                return None
            columns.append(self.rank - tensor.rank + counts.index(True))
        return columns if len({*columns}) == len(columns) else None

    def result_order(self) -> list[int]:
        """Return the order of the axes (`shape`, axes without an index) in the result: `before` comes first."""
        n, b = self.rank, len(self.before)
        return [*range(n, n + b), *range(n), *range(n + b, n + len(self.rest))]


def _rows(g: Graph, mask: Tensor, axis: int) -> list[Tensor]:
    """Return the positions at which a mask is true, a vector (number of true,) for each axis."""
    found, count = true_at(g, mask), sympy.Symbol(f"true in {mask.name}")
    return [g.set_sizes(g.Gather(found, g.const(i, INT64), axis=0), (count,)) for i in range(mask.rank)]


def _comes_of_mask(index: Tensor) -> bool:
    return any(str(size).startswith("true in") for size in index.sizes)


def counted_along(index: ir.Value | None) -> list[bool]:
    """Return for each axis whether the positions are 0, 1, 2, … along it, by Range and Unsqueeze; an empty list for other tensors."""
    if (made := producer_of(index, "Range")) is not None:
        return [True] if number(made.inputs[0]) == 0 and number(made.inputs[2]) == 1 else []
    made = producer_of(index, "Unsqueeze")
    inner, added = (counted_along(made.inputs[0]), whole_numbers(made.inputs[1])) if made is not None else ([], None)
    if not inner or added is None:
        return []
    for axis in sorted(axis % (len(inner) + len(added)) for axis in added):
        inner.insert(axis, False)
    return inner


def broadcast_sizes(tensors: Sequence[Tensor]) -> tuple[Size, ...]:
    """Return the sizes that these tensors broadcast to."""
    rank = max(tensor.rank for tensor in tensors)
    aligned = [(1,) * (rank - tensor.rank) + tuple(tensor.sizes) for tensor in tensors]
    return tuple(next((size for size in column if size != 1), 1) for column in zip(*aligned, strict=True))


@translates(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(g: Graph, x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """index(x, indices) → Compress for one mask, Gather for one tensor, else GatherND of the indexed axes, moved to the front.

    Positions 0, 1, … over whole axes, such as the rows and columns of a mask, become Transpose and Unsqueeze.
    """
    if mask := sole_mask(x, indices):
        return _compress(g, x, *mask)
    at = Positions(g, x, indices)
    if (columns := at.whole_axes(x)) is not None:
        return _laid_out(g, x, at, columns)
    if len(at.axes) == 1:
        return g.Gather(x, at.tensors[0], axis=at.axes[0])
    picked = g.GatherND(permute_axes(g, x, at.axes + at.rest), at.matrix(g))
    return permute_axes(g, picked, at.result_order())


def _laid_out(g: Graph, x: Tensor, at: Positions, columns: Sequence[int]) -> Tensor:
    """Append Transpose and Unsqueeze that move each indexed axis of x to the axis of `shape` along which its positions count."""
    n = len(at.before)
    moved = permute_axes(g, x, [*at.before, *(axis for _, axis in sorted(zip(columns, at.axes, strict=True))), *at.rest[n:]])
    added = [n + i for i in range(at.rank) if i not in columns]
    return g.Unsqueeze(moved, added) if added else moved


def _compress(g: Graph, x: Tensor, axis: int, mask: Tensor) -> Tensor:
    """Append Compress along the axes from `axis` on that the mask covers, merged into one: (…, number of true, …)."""
    mask, spanned = g.set_sizes(g.cast(mask, BOOL), mask.sizes), numel(mask.sizes)
    flat = g.reshape_to(mask, (spanned,))
    if mask.rank == x.rank > 0:
        return g.Compress(x, flat)
    merged = (*x.sizes[:axis], spanned, *x.sizes[axis + mask.rank :])
    return g.Compress(g.reshape_to(x, merged), flat, axis=axis)


@translates(aten.masked_select.default)
def masked_select(g: Graph, x: Tensor, mask: Tensor) -> Tensor:
    """masked_select(x, mask) → Expand both to common sizes, and Compress."""
    sizes = broadcast_sizes([x, mask])
    return _compress(g, expand_to(g, x, sizes), 0, expand_to(g, mask, sizes))


@translates(aten.index_select.default)
def index_select(g: Graph, x: Tensor, dim: int, index: Tensor) -> Tensor:
    """index_select(x, dim, index) → Gather."""
    # x: (…, size, …), index: (n,), the result: (…, n, …)
    if x.rank == 0:
        return x
    index = positions(g, index)
    return g.Gather(x, index if index.rank else g.Unsqueeze(index, [0]), axis=dim)


def ensure_axis(g: Graph, x: Tensor) -> Tensor:
    """Return the tensor with at least one axis."""
    return x if x.rank else g.set_sizes(g.Unsqueeze(x, [0]), (1,))


@translates(aten.gather.default)
def gather(g: Graph, x: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    """gather(x, dim, index) → GatherElements."""
    # x and index have the same number of axes; the result has the sizes of index
    if 0 in index.sizes:
        return make_full(g, g.sizes, 0, x.dtype)
    made = g.GatherElements(ensure_axis(g, x), positions(g, ensure_axis(g, index)), axis=dim)
    return made if index.rank else g.Squeeze(made, [0])


@translates(aten.take_along_dim.default)
def take_along_dim(g: Graph, x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """take_along_dim(x, indices, dim) → GatherElements, with both expanded along the other axes."""
    if dim is None:
        return g.Gather(g.reshape_to(x, (numel(x.sizes),)), g.reshape_to(positions(g, indices), (numel(indices.sizes),)), axis=0)
    axis = dim % x.rank
    common = broadcast_sizes([x, indices])
    data, index = (expand_to(g, t, [*common[:axis], t.sizes[axis], *common[axis + 1 :]]) for t in (x, indices))
    return g.GatherElements(data, positions(g, index), axis=axis)


@translates(aten.take.default)
def take(g: Graph, x: Tensor, index: Tensor) -> Tensor:
    """take(x, index) → Gather from the flattened tensor."""
    return g.Gather(g.reshape_to(x, (numel(x.sizes),)), positions(g, index), axis=0)


@translates(aten.embedding.default)
def embedding(
    g: Graph, weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """embedding(weight, indices) → Gather. The padding index affects only gradients."""
    # weight: (words, width), indices: (…), the result: (…, width)
    return g.Gather(weight, positions(g, indices))


@translates(aten.nonzero.default, aten.argwhere.default)
def nonzero(g: Graph, x: Tensor) -> Tensor:
    """nonzero(x) → NonZero and Transpose."""
    # the result is (number of nonzero elements, axes of x)
    if x.rank == 0:
        return g.Slice(g.Transpose(true_at(g, ensure_axis(g, x)), perm=[1, 0]), [0], [0], [1])
    return g.Transpose(true_at(g, x), perm=[1, 0])


@translates(aten.nonzero_numpy.default, aten.where.default)
def nonzero_by_axis(g: Graph, x: Tensor) -> list[Tensor]:
    """nonzero_numpy(x), where(x) → NonZero, and a Gather for each axis."""
    x = ensure_axis(g, x)
    found = true_at(g, x)
    return [g.Gather(found, g.const(i, INT64), axis=0) for i in range(x.rank)]


@translates(aten.nonzero_static.default)
def nonzero_static(g: Graph, x: Tensor, size: Size, fill_value: int = -1) -> Tensor:
    """nonzero_static(x, size, fill_value) → NonZero and Transpose, followed by rows of the fill value, cut to the size."""
    found = nonzero(g, x)
    rest = make_full(g, [size, x.rank], fill_value, INT64)
    return g.Slice(g.Concat(found, rest, axis=0), [0], [size], [0])


@translates(aten.diff.default)
def diff(g: Graph, x: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """diff(x, n, dim, prepend, append) → n times Sub of two Slices; Xor for booleans."""
    parts = [part for part in (prepend, x, append) if part is not None]
    x = g.Concat(*g.promote(*parts), axis=dim) if len(parts) > 1 else x
    for _ in range(n):
        x = g.op("Xor" if x.dtype == BOOL else "Sub", g.Slice(x, [1], [END], [dim]), g.Slice(x, [0], [-1], [dim]))
    return x


def restore_axes(g: Graph, x: Tensor, order: Sequence[int]) -> Tensor:
    """Return the tensor with its axes restored from this order."""
    return permute_axes(g, x, inverse(order))
