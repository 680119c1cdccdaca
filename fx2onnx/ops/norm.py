"""Normalisation by mean and variance: layer, RMS, group, instance and batch norms. p-norms are in reduce_norm.py."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import onnx_ir as ir
import torch

from ..compat.operators import aten
from ..compat.symbols import FloorDiv
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE, FLOAT, TORCH
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates


def given_or_neutral(g: Graph, given: Tensor | None, value: float, sizes: Sequence[Size], dtype: ir.DataType) -> Tensor:
    """Return the given scale or shift, or ones or zeros."""
    if given is not None:
        return g.cast(given, dtype)
    if all(isinstance(size, int) for size in sizes):
        return g.const(torch.full(tuple(sizes), value), dtype)
    return g.Expand(g.scalar(value, dtype), list(sizes))


def wider(x: Tensor, *others: Tensor | None) -> ir.DataType:
    """Return the dtype of the weights, which may be wider than that of the activations."""
    return next((other.dtype for other in others if other is not None), x.dtype)


def moments(g: Graph, x: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return mean and biased variance over these axes, which are kept: ReduceMean, Sub, Mul, ReduceMean."""
    mean = g.ReduceMean(x, list(axes), keepdims=1)
    centred = g.Sub(x, mean)
    return mean, g.ReduceMean(g.Mul(centred, centred), list(axes), keepdims=1)


def inverse_deviation(g: Graph, variance: Tensor, eps: float) -> Tensor:
    """Return 1/√(variance + eps)."""
    return g.Reciprocal(g.Sqrt(g.Add(variance, eps)))


@translates(aten.layer_norm.default)
def layer_norm(
    g: Graph,
    x: Tensor,
    normalized_shape: Sequence[Size],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """layer_norm(x, shape, w?, b?, eps) → LayerNormalization over the last len(shape) axes."""
    dtype = wider(x, weight, bias)
    scale = given_or_neutral(g, weight, 1, normalized_shape, dtype)
    return g.LayerNormalization(g.cast(x, dtype), scale, bias, axis=-len(normalized_shape), epsilon=eps)


@translates(aten.native_layer_norm.default)
def native_layer_norm(
    g: Graph, x: Tensor, normalized_shape: Sequence[Size], weight: Tensor | None, bias: Tensor | None, eps: float
) -> list[Tensor]:
    """native_layer_norm(x, shape, w?, b?, eps) → LayerNormalization, the mean, and 1/√(variance + eps)."""
    mean, variance = moments(g, x, range(x.rank - len(normalized_shape), x.rank))
    return [layer_norm(g, x, normalized_shape, weight, bias, eps), mean, inverse_deviation(g, variance, eps)]


@translates(aten.rms_norm.default)
def rms_norm(g: Graph, x: Tensor, normalized_shape: Sequence[Size], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """rms_norm(x, shape, w?, eps?) → x/√(mean(x²) + eps)·w: RMSNormalization from opset 23 on, else its formula.

    The default eps in torch is that of the dtype it computes in, which is float32 for half precision.
    """
    computed = x.dtype if x.dtype == DOUBLE else FLOAT
    eps = torch.finfo(TORCH[computed]).eps if eps is None else eps
    if g.opset >= 23 and wider(x, weight) == x.dtype:
        scale = given_or_neutral(g, weight, 1, normalized_shape, x.dtype)
        return g.RMSNormalization(x, scale, axis=-len(normalized_shape), epsilon=eps, stash_type=computed)
    made = g.Div(g.cast(x, computed), _root_mean_square(g, x, normalized_shape, eps))
    return made if weight is None else g.Mul(made, g.cast(weight, computed))


@translates(aten._fused_rms_norm.default)
def fused_rms_norm(g: Graph, x: Tensor, normalized_shape: Sequence[Size], weight: Tensor | None, eps: float | None) -> list[Tensor]:
    """_fused_rms_norm(x, shape, w?, eps?) → the RMS norm, and 1/√(mean(x²) + eps)."""
    default = torch.finfo(torch.float64 if x.dtype == DOUBLE else torch.float32).eps
    root = _root_mean_square(g, x, normalized_shape, default if eps is None else eps)
    return [rms_norm(g, x, normalized_shape, weight, eps), g.Reciprocal(root)]


def _root_mean_square(g: Graph, x: Tensor, normalized_shape: Sequence[Size], eps: float) -> Tensor:
    axes = list(range(x.rank - len(normalized_shape), x.rank))
    x = g.cast(x, DOUBLE if x.dtype == DOUBLE else FLOAT)
    squares = g.Mul(x, x) if x.dtype == DOUBLE else g.Pow(x, 2)  # ONNX Runtime fuses Pow into a kernel whose eps is a float32
    return g.Sqrt(g.Add(g.ReduceMean(squares, axes, keepdims=1), eps))


def normalise_instances(g: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, channels: Size) -> Tensor:
    """Normalise each channel of each sample by its own mean and variance: InstanceNormalization; in float64 its formula."""
    if x.dtype != DOUBLE:
        return g.InstanceNormalization(x, *_affine(g, x, weight, bias, channels), epsilon=eps)
    mean, variance = moments(g, x, range(2, x.rank))
    made = g.Mul(g.Sub(x, mean), inverse_deviation(g, variance, eps))
    return apply_affine(g, made, weight, bias, x.rank)


def apply_affine(g: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, rank: int) -> Tensor:
    """Return x·w + b, with w and b for each channel, which is the second of `rank` axes."""
    later = list(range(1, rank - 1))
    if weight is not None:
        x = g.Mul(x, g.Unsqueeze(weight, later) if later else weight)
    return x if bias is None else g.Add(x, g.Unsqueeze(bias, later) if later else bias)


def _affine(g: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, channels: Size) -> tuple[Tensor, Tensor]:
    return given_or_neutral(g, weight, 1, [channels], x.dtype), given_or_neutral(g, bias, 0, [channels], x.dtype)


@translates(aten.group_norm.default)
def group_norm(
    g: Graph,
    x: Tensor,
    groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """group_norm(x, groups, w?, b?, eps) → Reshape, InstanceNormalization, Reshape, Mul, Add.

    GroupNormalization is not used: ONNX Runtime computes its variance as mean(x²) − mean(x)², which is inaccurate for a large mean.
    """
    x = g.cast(x, wider(x, weight, bias))
    if 0 in x.sizes:  # ONNX Runtime refuses it
        return x
    grouped = group_channels(g, x, groups)
    made = g.reshape_to(normalise_instances(g, grouped, None, None, eps, groups), x.sizes)
    return apply_affine(g, made, weight, bias, x.rank)


def group_channels(g: Graph, x: Tensor, groups: int) -> Tensor:
    """Return x (batch, channels, …) as (batch, groups, elements), with all elements of a group of channels in one row."""
    channels = x.sizes[1] // groups if isinstance(x.sizes[1], int) else FloorDiv(x.sizes[1], groups)
    sizes = (x.sizes[0], groups, channels * prod(x.sizes[2:]))
    return g.set_sizes(g.reshape_to(x, sizes), sizes)


@translates(aten.native_group_norm.default)
def native_group_norm(
    g: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, n: Size, channels: Size, pixels: Size, groups: int, eps: float
) -> list[Tensor]:
    """native_group_norm(x, w?, b?, N, C, HxW, groups, eps) → the group norm, the mean and 1/√(variance + eps) of each group."""
    mean, variance = moments(g, group_channels(g, x, groups), [2])
    statistics = [g.Squeeze(value, [2]) for value in (mean, inverse_deviation(g, variance, eps))]
    return [group_norm(g, x, groups, weight, bias, eps), *statistics]


@translates(aten.instance_norm.default)
def instance_norm(
    g: Graph,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor | list[Tensor]:
    """instance_norm(x, w?, b?, mean?, var?, use_input_stats, momentum, eps) → InstanceNormalization, or BatchNormalization.

    With `use_input_stats` the new running statistics are further results.
    """
    if not use_input_stats:
        return batch_norm(g, x, weight, bias, running_mean, running_var, False, momentum, eps)
    x = g.cast(x, wider(x, weight, bias))
    made = normalise_instances(g, x, weight, bias, eps, x.sizes[1])
    if running_mean is None or running_var is None:
        return made
    mean, variance = (g.ReduceMean(value, [0, *range(2, x.rank)], keepdims=0) for value in moments(g, x, range(2, x.rank)))
    return [made, *update_running(g, running_mean, running_var, mean, variance, momentum, prod(x.sizes[2:]))]


@translates(aten.batch_norm.default)
def batch_norm(
    g: Graph,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor | list[Tensor]:
    """batch_norm(x, w?, b?, mean?, var?, training, momentum, eps) → BatchNormalization; in training with the statistics of the batch.

    In training the new running statistics are further results.
    """
    if not training and running_mean is not None and running_var is not None:
        return batch_normalise(g, x, weight, bias, running_mean, running_var, eps)
    made = normalised_in_training(g, x, weight, bias, running_mean, running_var, momentum, eps)
    return made if len(made) > 1 else made[0]


def batch_normalise(g: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float) -> Tensor:
    """Normalise x (batch, channels, …) by a given mean and variance (channels,)."""
    x, affine = _prepare_affine(g, x, weight, bias, mean)
    return g.BatchNormalization(x, *affine, g.cast(mean, x.dtype), g.cast(variance, x.dtype), epsilon=eps)


def normalised_in_training(
    g: Graph,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> list[Tensor]:
    """Normalise x (batch, channels, …) by its own mean and variance; return it with the new running statistics, if there are any."""
    x, affine = _prepare_affine(g, x, weight, bias, running_mean)
    mean, variance = batch_moments(g, x)
    made = g.BatchNormalization(x, *affine, mean, variance, epsilon=eps)
    if running_mean is None or running_var is None:
        return [made]
    return [made, *update_running(g, running_mean, running_var, mean, variance, momentum, _count(x))]


def _prepare_affine(
    g: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None
) -> tuple[Tensor, list[Tensor]]:
    """Return x, its scale and its shift in the dtype of the weights."""
    if x.rank < 2:
        raise Untranslated("its input has no channel dimension")
    dtype = wider(x, weight, bias, running_mean)
    return g.cast(x, dtype), [given_or_neutral(g, v, one, [x.sizes[1]], dtype) for v, one in ((weight, 1), (bias, 0))]


def batch_moments(g: Graph, x: Tensor) -> list[Tensor]:
    """Return mean and biased variance of each channel of x (batch, channels, …), as vectors (channels,)."""
    others = [axis for axis in range(x.rank) if axis != 1]
    return [g.Squeeze(value, others) for value in moments(g, x, others)]


def _count(x: Tensor) -> Size:
    return prod(x.sizes[:1] + x.sizes[2:])


def update_running(
    g: Graph, running_mean: Tensor, running_var: Tensor, mean: Tensor, variance: Tensor, momentum: float, count: Size
) -> list[Tensor]:
    """Return (1 − momentum)·running + momentum·new, for the mean and for the unbiased variance of this many elements."""
    counted = g.scalar(count, mean.dtype)
    unbiased = g.Div(g.Mul(variance, counted), g.Sub(counted, 1))
    pairs = ((running_mean, mean), (running_var, unbiased))
    return [g.Add(g.Mul(old, 1 - momentum), g.Mul(g.cast(new, old.dtype), momentum)) for old, new in pairs]
