"""Histograms with their edges: the number or weight of the elements in each bin. histc is in search.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..compat.operators import aten
from ..ir.dtypes import BOOL, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .create import expand_scalar, make_linspace
from .index import numel
from .pointwise import where
from .scatter import append_scatter
from .shape import END


@translates(aten.histogram.bin_ct)
def histogram(
    g: Graph, x: Tensor, bins: int = 100, *, range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False
) -> list[Tensor]:
    """histogram(x, bins, range?, weight?, density) → the edges by linspace, a comparison with each edge, ScatterElements(add)."""
    rows = _rows(g, x, 1)
    edges = _edges(g, rows, [bins], range)
    return [_count_bins(g, rows, edges, weight, density), edges[0]]


@translates(aten.histogram.bins_tensor)
def histogram_of_edges(g: Graph, x: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False) -> list[Tensor]:
    """histogram(x, edges, weight?, density) → a comparison with each edge, ScatterElements(add)."""
    return [_count_bins(g, _rows(g, x, 1), [bins], weight, density), bins]


@translates(aten._histogramdd_bin_edges.default)
def histogramdd_edges(
    g: Graph, x: Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False
) -> list[Tensor]:
    """_histogramdd_bin_edges(x, bins, range?) → linspace from the minimum to the maximum of each column."""
    return _edges(g, _rows(g, x, x.sizes[-1]), bins, range)


@translates(aten._histogramdd_from_bin_cts.default)
def histogramdd_of_counts(
    g: Graph, x: Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False
) -> Tensor:
    """_histogramdd_from_bin_cts(x, bins, range?, weight?, density) → as histogram, over all columns together."""
    rows = _rows(g, x, x.sizes[-1])
    return _count_bins(g, rows, _edges(g, rows, bins, range), weight, density)


@translates(aten._histogramdd_from_bin_tensors.default)
def histogramdd_of_edges(g: Graph, x: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False) -> Tensor:
    """_histogramdd_from_bin_tensors(x, edges, weight?, density) → as histogram, over all columns together."""
    return _count_bins(g, _rows(g, x, x.sizes[-1]), bins, weight, density)


def _rows(g: Graph, x: Tensor, columns: Size) -> Tensor:
    """Return the elements as points with so many coordinates, (points, columns)."""
    points = numel(x.sizes) if columns == 1 else numel(x.sizes[:-1])
    return g.set_sizes(g.reshape_to(x, (points, columns)), (points, columns))


def _edges(g: Graph, x: Tensor, bins: Sequence[int], range: Sequence[float] | None) -> list[Tensor]:
    """Return the edges of each column, one more than bins, between the bounds of the range or the minimum and maximum."""
    made = []
    for column, count in enumerate(bins):
        if range is None:
            low, high = _ends(g, g.Gather(x, g.const(column, INT64), axis=1))
        else:
            low, high = (g.const(range[2 * column + end], x.dtype) for end in (0, 1))
        same = g.Mul(g.cast(g.Equal(low, high), x.dtype), 0.5)
        edges = make_linspace(g, g.Sub(low, same), g.Add(high, same), count + 1, x.dtype)
        made.append(g.set_sizes(edges, (count + 1,)))
    return made


def _ends(g: Graph, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the minimum and maximum, or 0 and 1 for an empty tensor."""
    least, most = (
        g.op(kind, g.Concat(x, g.const([beyond], x.dtype), axis=0), keepdims=0)
        for kind, beyond in (("ReduceMin", math.inf), ("ReduceMax", -math.inf))
    )
    return where(g, g.IsInf(least), 0, least), where(g, g.IsInf(most), 1, most)


def _count_bins(g: Graph, x: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    sizes = [edge.sizes[0] - 1 for edge in edges]
    place, inside = g.const(0, INT64), g.const(True, BOOL)
    for column, edge in enumerate(edges):
        at, within = _bin_of(g, g.Gather(x, g.const(column, INT64), axis=1), edge)
        place = g.Add(g.Mul(place, g.scalar(sizes[column], INT64)), at)
        inside = g.And(inside, within)
    points = (x.sizes[0],)
    weights = expand_scalar(g, points, 1.0, x.dtype) if weight is None else g.reshape_to(g.cast(weight, x.dtype), points)
    weights = where(g, inside, weights, 0)
    zeros = expand_scalar(g, [numel(sizes)], 0.0, x.dtype)
    made = append_scatter(g, "ScatterElements", zeros, where(g, inside, place, 0), weights, "add", axis=0)
    made = g.set_sizes(g.reshape_to(made, sizes), sizes)
    return _normalise_density(g, made, edges) if density else made


def _bin_of(g: Graph, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Return the bin of each element, where the last bin includes its upper edge, and whether the element is in any bin."""
    reached = g.GreaterOrEqual(g.Unsqueeze(x, [1]), g.Unsqueeze(edges, [0]))
    number = g.Sub(g.ReduceSum(g.cast(reached, INT64), [1], keepdims=0), 1)
    last = g.Squeeze(g.Slice(edges, [-1], [END], [0]), [0])
    number = g.Min(number, g.scalar(edges.sizes[0] - 2, INT64))
    return number, g.And(g.GreaterOrEqual(number, 0), g.LessOrEqual(x, last))


def _normalise_density(g: Graph, counts: Tensor, edges: Sequence[Tensor]) -> Tensor:
    made = g.Div(counts, g.ReduceSum(counts, keepdims=0))
    for axis, edge in enumerate(edges):
        widths = g.Sub(g.Slice(edge, [1], [END], [0]), g.Slice(edge, [0], [-1], [0]))
        later = list(range(1, len(edges) - axis))
        made = g.Div(made, g.Unsqueeze(widths, later) if later else widths)
    return made
