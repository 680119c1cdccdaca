"""Resizing of images: upsampling, grid sampling, and grids. See also resize_antialiased.py, and nn_layout.py for pixel shuffles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import FLOAT, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .create import make_range
from .resize_by_scale import MAY_STAY, A, Scale, comes_to, resize_by_weights

NEAREST = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
NEAREST_EXACT = {"mode": "nearest", "nearest_mode": "round_prefer_ceil", "coordinate_transformation_mode": "half_pixel"}
GRID_MODES = {False: ("bilinear", "nearest", "bicubic"), True: ("linear", "nearest", "cubic")}
PADDINGS = ("zeros", "border", "reflection")


def append_resize(g: Graph, x: Tensor, scales: Sequence[float | None], **attributes: Any) -> Tensor:
    """Append Resize of all axes after the second, by the given scales, or to the sizes of the result."""
    axes = list(range(2, x.rank))
    if any(scale is not None for scale in scales):
        return g.Resize(x, None, g.const(_all(g, x, scales), FLOAT), axes=axes, **attributes)
    return g.Resize(x, None, None, list(g.sizes[2:]), axes=axes, **attributes)


def _all(g: Graph, x: Tensor, scales: Sequence[Scale | None]) -> list[Scale]:
    """Return a scale for each axis.

    Raises:
        Untranslated: sizes are given as well, and may differ from those of the scales.
    """
    _check_sizes(g, x, scales)
    return [out / size if scale is None else scale for scale, out, size in zip(scales, g.sizes[2:], x.sizes[2:], strict=True)]


def _check_sizes(g: Graph, x: Tensor, scales: Sequence[float | None]) -> None:
    """Check that sizes and scales agree: a vec overload has sizes only without scales, the others have both."""
    if g.overload._overloadname == "vec":
        return
    for size, wanted, scale in zip(x.sizes[2:], g.sizes[2:], scales, strict=True):
        if not isinstance(size, int) or scale is None or wanted != int(size * scale):
            raise Untranslated("the scales may not lead to the sizes that are passed as well: pass only one of them")


@translates(
    aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec,
    aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec, aten._upsample_nearest_exact3d.vec,
)  # fmt: skip
def nearest_vec(g: Graph, x: Tensor, size: Sequence[Size] | None, scale_factors: Sequence[float] | None) -> Tensor:
    """upsample_nearest(x, size?, scales?) → Resize by integer factors, else Gather at torch's rounded positions."""
    return nearest(g, x, size, *(scale_factors or ()))


@translates(
    aten.upsample_nearest1d.default, aten.upsample_nearest2d.default, aten.upsample_nearest3d.default,
    aten._upsample_nearest_exact1d.default, aten._upsample_nearest_exact2d.default, aten._upsample_nearest_exact3d.default,
)  # fmt: skip
def nearest(g: Graph, x: Tensor, size: Sequence[Size] | None, *scales: float | None) -> Tensor:
    """upsample_nearest(x, size, scale…) → Resize by integer factors, else Gather at torch's rounded positions."""
    exact = "exact" in g.overload._schema.name
    given = list(scales) or [None] * (x.rank - 2)
    if x.dtype == FLOAT and (
        _whole_times(x.sizes[2:], g.sizes[2:], given) or all(isinstance(scale, float) and scale == int(scale) for scale in given)
    ):
        return append_resize(g, x, given, **(NEAREST_EXACT if exact else NEAREST))
    made, flat = x, x.rank == 4 and not exact
    for axis, scale in enumerate(given, 2):
        at = _positions(g, x.sizes[axis], g.sizes[axis], scale, exact)
        made = g.Gather(made, _adjust_image_positions(g, at, x.sizes[axis], g.sizes[axis], scale) if flat else at, axis=axis)
    return made


def _whole_times(sizes: Sequence[Size], wanted: Sequence[Size], scales: Sequence[float | None]) -> bool:
    """Return whether only sizes are given, and they are known multiples: ONNX Runtime rounds other positions differently."""
    known = all(isinstance(size, int) for size in (*sizes, *wanted)) and all(scale is None for scale in scales)
    return known and all(size > 0 and to % size == 0 for size, to in zip(sizes, wanted, strict=True))


def _positions(g: Graph, size: Size, wanted: Size, scale: float | None, exact: bool) -> Tensor:
    """Return min(⌊(i + ½)·scale⌋, size − 1), with the ½ only for `exact`, in float32 as in torch."""
    outputs = g.cast(g.Range(g.const(0, INT64), g.scalar(wanted, INT64), g.const(1, INT64)), FLOAT)
    by = g.scalar(1 / scale, FLOAT) if scale else g.Div(g.scalar(size, FLOAT), g.scalar(wanted, FLOAT))
    at = g.Floor(g.Mul(g.Add(outputs, 0.5) if exact else outputs, by))
    return g.Min(g.cast(at, INT64), g.scalar(size - 1, INT64))


def _adjust_image_positions(g: Graph, positions: Tensor, size: Size, wanted: Size, scale: Scale | None) -> Tensor:
    """Return the positions along an axis of an image: all if its size does not change, each twice if it is doubled.

    For 1-D and 3-D inputs, torch always uses the scale (ATen/native/UpSample.h, `nearest_idx`).
    """
    for times, less in ((1, MAY_STAY), (2, 2.5)):
        known = isinstance(size, int) and isinstance(wanted, int)
        if scale is None or (known and wanted != times * size) or (isinstance(scale, float) and not times < scale < less):
            continue
        repeated = g.Div(make_range(g, wanted), g.const(times, INT64))
        positions = g.Where(g.Equal(g.scalar(wanted, INT64), g.scalar(size * times, INT64)), repeated, positions)
    return positions


@translates(aten.upsample_linear1d.vec, aten.upsample_bilinear2d.vec, aten.upsample_trilinear3d.vec)
def linear_vec(g: Graph, x: Tensor, size: Sequence[Size] | None, align_corners: bool, scale_factors: Sequence[float] | None) -> Tensor:
    """upsample_linear(x, size?, align_corners, scales?) → Resize."""
    return linear(g, x, size, align_corners, *(scale_factors or ()))


@translates(aten.upsample_linear1d.default, aten.upsample_bilinear2d.default, aten.upsample_trilinear3d.default)
def linear(g: Graph, x: Tensor, size: Sequence[Size] | None, align_corners: bool, *scales: float | None) -> Tensor:
    """upsample_linear(x, size, align_corners, scale…) → Resize; a product along each axis if ONNX's scale differs.

    An axis whose size does not change is copied, whatever its scale is.
    """
    if align_corners or all(scale is None for scale in scales):
        return append_resize(g, x, (), mode="linear", coordinate_transformation_mode=_corners(align_corners))
    axes = zip(x.sizes[2:], g.sizes[2:], _all(g, x, scales), strict=True)
    by = [1.0 if isinstance(size, int) and size == wanted else scale for size, wanted, scale in axes]
    if not all(map(comes_to, x.sizes[2:], g.sizes[2:], by)):
        return resize_by_weights(g, x, by, cubic=False)
    return append_resize(g, x, by, mode="linear", coordinate_transformation_mode=_corners(align_corners))


@translates(aten.upsample_bicubic2d.vec)
def bicubic_vec(g: Graph, x: Tensor, size: Sequence[Size] | None, align_corners: bool, scale_factors: Sequence[float] | None) -> Tensor:
    """upsample_bicubic2d(x, size?, align_corners, scales?) → Resize."""
    return bicubic(g, x, size, align_corners, *(scale_factors or ()))


@translates(aten.upsample_bicubic2d.default)
def bicubic(g: Graph, x: Tensor, size: Sequence[Size] | None, align_corners: bool, *scales: float | None) -> Tensor:
    """upsample_bicubic2d(x, size, align_corners, scale…) → Resize; a product along each axis if ONNX's scale differs.

    torch resamples an axis whose size does not change by its scale; ONNX Runtime copies an image if no size changes.
    """
    given = [] if align_corners or all(scale is None for scale in scales) else _all(g, x, scales)
    stays = any(
        isinstance(size, int) and size == wanted and scale != 1
        for size, wanted, scale in zip(x.sizes[2:], g.sizes[2:], given, strict=False)
    )
    if stays or not all(map(comes_to, x.sizes[2:], g.sizes[2:], given)):
        return resize_by_weights(g, x, given, cubic=True)
    return append_resize(g, x, given, mode="cubic", cubic_coeff_a=A, coordinate_transformation_mode=_corners(align_corners))


def _corners(align_corners: bool) -> str:
    return "align_corners" if align_corners else "half_pixel"


@translates(aten.grid_sampler.default, aten.grid_sampler_2d.default, aten.grid_sampler_3d.default)
def grid_sampler(g: Graph, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    """grid_sampler(x, grid, mode, padding, align_corners) → GridSample, whose modes have other names from opset 20 on."""
    if x.rank == 5 and g.opset < 20:
        raise Untranslated("5-D inputs need opset 20 or later")
    name = GRID_MODES[g.opset >= 20][mode]
    return g.GridSample(x, grid, mode=name, padding_mode=PADDINGS[padding], align_corners=align_corners)


@translates(aten.affine_grid_generator.default)
def affine_grid(g: Graph, theta: Tensor, size: Sequence[Size], align_corners: bool) -> Tensor:
    """affine_grid_generator(θ, size, align_corners) → the sum over axes of a column of θ times the positions from −1 to 1."""
    axes = len(size) - 2
    columns = g.op("Split", g.Transpose(theta, perm=[0, 2, 1]), axis=1, num_outputs=axes + 1, outputs=axes + 1)
    spread = [g.Unsqueeze(column, list(range(2, axes + 1))) if axes > 1 else column for column in columns]
    made = spread[-1]
    for axis, length in enumerate(size[2:]):
        numbers = g.cast(g.Range(g.const(0, INT64), g.scalar(length, INT64), g.const(1, INT64)), theta.dtype)
        count = g.scalar(length, theta.dtype)
        doubled = g.Add(g.Sub(g.Mul(numbers, 2), count), 1)
        positions = g.Div(doubled, g.Max(g.Sub(count, 1), 1) if align_corners else count)
        made = g.Add(made, g.Mul(spread[axes - 1 - axis], g.Reshape(positions, [-1] + [1] * (axes - axis))))
    return made
