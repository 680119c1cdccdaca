"""Padding, with numbers or with a tensor's own elements."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .reduce import never_empty
from .shape import END

MODES = {"reflect": "reflect", "replicate": "edge"}


@translates(aten.pad.default)
def pad(g: Graph, x: Tensor, pad: Sequence[Size], mode: str = "constant", value: float | None = None) -> Tensor:
    """pad(x, pad, mode, value) → Pad; also Slice for negative padding in modes other than constant."""
    if mode == "constant":
        return constant_pad(g, x, pad, value or 0)
    if mode == "circular":
        return circular_pad(g, x, pad)
    return _pad(g, x, pad, MODES[mode])


@translates(aten.constant_pad_nd.default)
def constant_pad(g: Graph, x: Tensor, pad: Sequence[Size], value: float = 0) -> Tensor:
    """constant_pad_nd(x, pad, value) → Pad; nothing if all widths are 0."""
    before, after, axes = _split_padding(x, pad)
    return pad_along(g, x, before, after, axes, g.const(value, x.dtype)) if axes else x


def pad_along(
    g: Graph,
    x: Tensor,
    before: Sequence[Size],
    after: Sequence[Size],
    axes: Sequence[int],
    value: Tensor | None = None,
    mode: str = "constant",
) -> Tensor:
    """Append Pad with a width for each axis of x, 0 for the axes that are not listed, and with `axes` listing all of them.

    If `axes` lists only some, ONNX Runtime 1.31 confuses them when it moves a Transpose past the Pad, and refuses the model. Without
    `axes`, it fuses the Pad into a pool, which may not be padded that far.
    """
    widths = [dict(zip(axes, given, strict=True)) for given in (before, after)]
    full = [of.get(axis, 0) for of in widths for axis in range(x.rank)]
    return g.Pad(x, full, value, list(range(x.rank)), mode=mode if mode != "constant" else None)


@translates(aten.pad_sequence.default)
def pad_sequence(
    g: Graph, sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """pad_sequence(xs, batch_first, value, side) → Pad of each to the longest, Concat along a new axis."""
    lengths = [x.sizes[0] for x in sequences]
    longest: Size = sympy.Max(*lengths)
    value = g.const(padding_value, sequences[0].dtype)
    padded = []
    for x, length in zip(sequences, lengths, strict=True):
        before, after = (longest - length, 0) if padding_side == "left" else (0, longest - length)
        padded.append(g.Unsqueeze(pad_along(g, x, [before], [after], [0], value), [0 if batch_first else 1]))
    return g.Concat(*padded, axis=0 if batch_first else 1)


@translates(aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default)
def reflection_pad(g: Graph, x: Tensor, padding: Sequence[Size]) -> Tensor:
    """reflection_pad(x, padding) → Pad with mode reflect."""
    return _pad(g, x, padding, "reflect")


@translates(aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default)
def replication_pad(g: Graph, x: Tensor, padding: Sequence[Size]) -> Tensor:
    """replication_pad(x, padding) → Pad with mode edge."""
    return _pad(g, x, padding, "edge")


@translates(aten._pad_circular.default)
def circular_pad(g: Graph, x: Tensor, pad: Sequence[Size]) -> Tensor:
    """_pad_circular(x, pad) → Pad with mode wrap; Concat of Slices before opset 19, or if x may be empty, which ONNX Runtime refuses."""
    known = all(isinstance(width, int) for width in pad)
    if g.opset >= 19 and (never_empty(x, range(x.rank)) or not known):
        return _pad_by_wrapping(g, x, pad)
    if not known:
        raise Untranslated("circular padding by a width that is not constant needs opset 19 or later")
    for begin, end, axis in zip(*_split_padding(x, pad), strict=True):
        inner = g.Slice(x, [max(-begin, 0)], [min(end, 0) or END], [axis]) if begin < 0 or end < 0 else x
        ends = [g.Slice(inner, [-begin], [END], [axis])] if begin > 0 else []
        starts = [g.Slice(inner, [0], [end], [axis])] if end > 0 else []
        x = g.set_sizes(g.Concat(*ends, inner, *starts, axis=axis) if ends or starts else inner, x.sizes)
    return x


def _split_padding(x: Tensor, pad: Sequence[Size]) -> tuple[list[Size], list[Size], list[int]]:
    """Return the padding before and after each padded axis, and these axes; torch starts with the last axis."""
    pairs = {x.rank - 1 - i: (pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)}
    axes = sorted(axis for axis, pair in pairs.items() if pair != (0, 0))
    return [pairs[axis][0] for axis in axes], [pairs[axis][1] for axis in axes], axes


def _pad(g: Graph, x: Tensor, pad: Sequence[Size], mode: str) -> Tensor:
    """Pad first, then cut: torch reads the edge of `x` even if it is cut off."""
    before, after, axes = _split_padding(x, pad)
    added = [width - _least(width) for width in (*before, *after)]
    if any(width != 0 for width in added):
        more = {axis: begin + end for axis, begin, end in zip(axes, added[: len(axes)], added[len(axes) :], strict=True)}
        sizes = [size + more.get(axis, 0) for axis, size in enumerate(x.sizes)]
        x = g.set_sizes(pad_along(g, x, added[: len(axes)], added[len(axes) :], axes, mode=mode), sizes)
    return _cut(g, x, before, after, axes)


def _pad_by_wrapping(g: Graph, x: Tensor, pad: Sequence[Size]) -> Tensor:
    """Cut first, then pad, so that elements that are cut off are not wrapped to the other end."""
    before, after, axes = _split_padding(x, pad)
    x = _cut(g, x, before, after, axes)
    added = [width - _least(width) for width in (*before, *after)]
    return pad_along(g, x, added[: len(axes)], added[len(axes) :], axes, mode="wrap") if any(width != 0 for width in added) else x


def _cut(g: Graph, x: Tensor, before: Sequence[Size], after: Sequence[Size], axes: Sequence[int]) -> Tensor:
    """Append Slice for the negative widths."""
    starts, ends = ([_least(width) for width in widths] for widths in (before, after))
    if all(width == 0 for width in (*starts, *ends)):
        return x
    stops = [x.sizes[axis] + width for axis, width in zip(axes, ends, strict=True)]
    return g.Slice(x, [-width for width in starts], stops, axes)


def _least(width: Size) -> Size:
    """Return the width if it is negative, else 0."""
    return min(width, 0) if isinstance(width, int) else sympy.Min(width, 0)
