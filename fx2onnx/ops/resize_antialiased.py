"""Upsampling with antialiasing: matrix products along both axes, with weights computed by torch, or by the graph for dynamic sizes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from ..compat.operators import OpOverload, aten
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE, FLOAT, FLOATS, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates

CUBIC = -0.5  # the parameter of the cubic filter, as in Pillow; without antialiasing torch uses -0.75


@translates(aten._upsample_bilinear2d_aa.vec, aten._upsample_bicubic2d_aa.vec)
def antialiased_vec(g: Graph, x: Tensor, size: Sequence[Size] | None, align_corners: bool, scale_factors: Sequence[float] | None) -> Tensor:
    """_upsample_bilinear2d_aa(x, size?, align_corners, scales?) → MatMul along both axes with the weights of the filter."""
    return upsample_antialiased(g, x, size, align_corners, *(scale_factors or ()))


@translates(aten._upsample_bilinear2d_aa.default, aten._upsample_bicubic2d_aa.default)
def upsample_antialiased(g: Graph, x: Tensor, size: Sequence[Size] | None, align_corners: bool, *scales: float | None) -> Tensor:
    """_upsample_bilinear2d_aa(x, size, align_corners, scale…) → the same; the steps follow the scales, whatever the size."""
    if x.dtype not in FLOATS:
        raise Untranslated(
            "antialiasing of integer images is not supported, because torch uses integer arithmetic for it: convert them to float"
        )
    given, kind = dict(enumerate(scales, 2)), DOUBLE if x.dtype == DOUBLE else FLOAT
    rows, columns = (_weights(g, x.sizes[axis], g.sizes[axis], align_corners, given.get(axis), kind) for axis in (2, 3))
    return along_rows(g, x, rows, along_columns(g, x, columns))


def along_columns(g: Graph, x: Tensor, weights: Tensor) -> Tensor:
    """Append the product of an image's last axis with weights, (wanted, size)."""
    return g.MatMul(x, g.Transpose(g.cast(weights, x.dtype), perm=[1, 0]))


def along_rows(g: Graph, x: Tensor, weights: Tensor, wide: Tensor) -> Tensor:
    """Append the product of weights, (wanted, size), with the second last axis of `wide`, computed from images `x`."""
    rows = g.cast(weights, x.dtype)
    if not isinstance(x.sizes[0], int):  # ONNX Runtime cannot broadcast a matrix to an empty batch
        rows = g.Expand(rows, [x.sizes[0]] + [1] * (x.rank - 1))
    return g.MatMul(rows, wide)


def _weights(g: Graph, size: Size, wanted: Size, align_corners: bool, scale: float | None, kind: ir.DataType) -> Tensor:
    """Return the weights of input rows in output rows, (wanted, size): for half precision in float32, as in torch."""
    name = g.overload._schema.name.partition("::")[2]
    if isinstance(size, int) and isinstance(wanted, int):
        return g.const(_made_by_torch(getattr(aten, name).default, size, wanted, align_corners, scale), kind)
    if scale is not None and g.overload._overloadname == "default":
        raise Untranslated("the scales may not lead to the sizes that are passed as well: pass only one of them")
    return _made_by_graph(g, size, wanted, _step(g, size, wanted, align_corners, scale, kind), "bicubic" in name)


def _made_by_torch(operator: OpOverload, size: int, wanted: int, align_corners: bool, scale: float | None) -> torch.Tensor:
    from ..compat.dispatch import disable_proxy_modes_tracing

    with disable_proxy_modes_tracing():
        unit = torch.eye(size, dtype=torch.float64)[None, None]
        weights: torch.Tensor = operator(unit, [wanted, size], align_corners, scale, None)
        return weights[0, 0]


def _step(g: Graph, size: Size, wanted: Size, align_corners: bool, scale: float | None, kind: ir.DataType) -> Tensor:
    """Return the step between output rows in input rows, as `area_pixel_compute_scale` of ATen/native/UpSample.h computes it."""
    if align_corners:
        gaps = [g.Sub(g.scalar(length, kind), 1) for length in (size, wanted)]
        return g.Where(g.Greater(gaps[1], 0), g.Div(gaps[0], g.Max(gaps[1], 1)), g.const(0, kind))
    return g.scalar(1 / scale, kind) if scale else g.Div(g.scalar(size, kind), g.scalar(wanted, kind))


def _made_by_graph(g: Graph, size: Size, wanted: Size, step: Tensor, cubic: bool) -> Tensor:
    """Return the filter at the distances of all pixels from all centres, with each row divided by its sum (UpSampleKernel.cpp, `_aa`)."""
    centres = g.Unsqueeze(g.Mul(step, middles(g, wanted, step.dtype)), [1])
    distances = g.Div(g.Sub(g.Unsqueeze(middles(g, size, step.dtype), [0]), centres), g.Max(step, 1))
    weights = keys(g, g.Abs(distances), CUBIC) if cubic else hat(g, g.Abs(distances))
    return g.Div(weights, g.ReduceSum(weights, [1], keepdims=True))


def middles(g: Graph, size: Size, kind: ir.DataType) -> Tensor:
    """Return the centres of this many pixels, (size,)."""
    numbers = g.Range(g.const(0, INT64), g.scalar(size, INT64), g.const(1, INT64))
    return g.Add(g.cast(numbers, kind), 0.5)


def hat(g: Graph, distance: Tensor) -> Tensor:
    """Return the weight of a pixel at this distance in a linear filter."""
    return g.Max(g.Sub(1, distance), 0)


def keys(g: Graph, distance: Tensor, a: float) -> Tensor:
    """Return Keys' filter at distance d: ((a + 2)·d - (a + 3))·d² + 1 for d < 1, a·(((d - 5)·d + 8)·d - 4) for d < 2."""
    near = g.Add(g.Mul(g.Sub(g.Mul(distance, a + 2), a + 3), g.Mul(distance, distance)), 1)
    far = g.Mul(g.Sub(g.Mul(g.Add(g.Mul(g.Sub(distance, 5), distance), 8), distance), 4), a)
    return g.Where(g.Less(distance, 1), near, g.Where(g.Less(distance, 2), far, g.const(0, distance.dtype)))
