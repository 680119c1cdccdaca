"""Reductions over segments of an axis, whose lengths are a tensor."""

from __future__ import annotations

import math

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import FLOAT, HALVES, INT64
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .create import expand_scalar, make_range
from .pointwise import where
from .scatter import append_scatter
from .shape import END

EMPTY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
SCATTERED = {"sum": "add", "mean": "add", "prod": "mul", "max": "max", "min": "min"}


@translates(aten.segment_reduce.default)
def segment_reduce(
    g: Graph, data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: float | None = None,
) -> Tensor:  # fmt: skip
    """segment_reduce(x, reduce, lengths or offsets) → the segment of each position by comparisons, and ScatterElements that reduces."""
    begins, ends = _borders(g, lengths, offsets)
    axis = axis % data.rank
    x = g.set_sizes(g.cast(data, FLOAT) if data.dtype in HALVES else data, data.sizes)
    rows = _rows(g, begins, ends, x, axis)
    made = _reduce_segments(g, x, rows, reduce, EMPTY[reduce] if initial is None else initial, axis)
    if reduce != "mean":
        return made
    counts = _along(g, g.cast(g.Sub(ends, begins), x.dtype), axis, x.rank)
    return g.Where(g.Equal(counts, 0), g.const(math.nan if initial is None else initial, x.dtype), g.Div(made, counts))


def _borders(g: Graph, lengths: Tensor | None, offsets: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the start and end of each segment, (…, segments)."""
    if offsets is not None:
        offsets = g.cast(offsets, INT64)
        return g.Slice(offsets, [0], [-1], [-1]), g.Slice(offsets, [1], [END], [-1])
    if lengths is None:
        raise Untranslated("it needs lengths or offsets")
    lengths = g.cast(lengths, INT64)
    ends = g.CumSum(lengths, g.const(-1, INT64))
    return g.Sub(ends, lengths), ends


def _rows(g: Graph, begins: Tensor, ends: Tensor, x: Tensor, axis: int) -> Tensor:
    """Return the segment of each element, in the sizes of x; the number of segments if it is in none."""
    places = g.Unsqueeze(make_range(g, x.sizes[axis]), [1])  # (positions, 1), compared with (…, 1, segments)
    over = g.GreaterOrEqual(places, g.Unsqueeze(ends, [-2]))
    row = g.ReduceSum(g.cast(over, INT64), [axis + 1], keepdims=0)
    early = g.Less(g.Squeeze(places, [1]), g.Slice(begins, [0], [1], [-1]))
    row = where(g, early, g.scalar(g.sizes[axis], INT64), row)
    return g.Expand(_along(g, row, axis, x.rank), list(x.sizes))


def _along(g: Graph, x: Tensor, axis: int, rank: int) -> Tensor:
    """Return x, whose last axis is `axis`, with further axes of one element."""
    further = list(range(axis + 1, rank))
    return g.Unsqueeze(x, further) if further else x


def _reduce_segments(g: Graph, x: Tensor, rows: Tensor, reduce: str, first: float, axis: int) -> Tensor:
    sizes = [*x.sizes[:axis], g.sizes[axis] + 1, *x.sizes[axis + 1 :]]
    made = append_scatter(g, "ScatterElements", expand_scalar(g, sizes, first, x.dtype), rows, x, SCATTERED[reduce], axis=axis)
    if reduce in ("max", "min"):  # ONNX Runtime ignores NaN here
        missing = append_scatter(
            g, "ScatterElements", expand_scalar(g, sizes, 0.0, x.dtype), rows, g.cast(g.IsNaN(x), x.dtype), "add", axis=axis
        )
        made = where(g, g.Greater(missing, 0), math.nan, made)
    return g.Slice(made, [0], [-1], [axis])
