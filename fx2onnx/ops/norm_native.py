"""Batch norms of decomposed programs, which also return the statistics used and the new running statistics."""

from __future__ import annotations

from ..compat.operators import aten
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .norm import batch_moments, batch_normalise, inverse_deviation, normalised_in_training


@translates(aten._native_batch_norm_legit_no_training.default)
def native_batch_norm_eval(
    g: Graph,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> list[Tensor]:
    """_native_batch_norm_legit_no_training(x, w?, b?, mean, var, momentum, eps) → BatchNormalization, and two empty tensors."""
    none = g.const([], running_mean.dtype)
    return [batch_normalise(g, x, weight, bias, running_mean, running_var, eps), none, none]


@translates(aten._native_batch_norm_legit.default, aten._native_batch_norm_legit_functional.default, aten.native_batch_norm.default)
def native_batch_norm(
    g: Graph,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Tensor]:
    """_native_batch_norm_legit(x, w?, b?, mean, var, training, momentum, eps) → the batch norm, the mean and 1/√(variance + eps).

    In training the new running statistics are further results, except for native_batch_norm, whose schema does not declare the writes.
    """
    if not training and running_mean is not None and running_var is not None:
        results = native_batch_norm_eval(g, x, weight, bias, running_mean, running_var, momentum, eps)
        functional = g.at.target is aten._native_batch_norm_legit_functional.default
        return [*results, running_mean, running_var] if functional else results
    out, *running = normalised_in_training(g, x, weight, bias, running_mean, running_var, momentum, eps)
    mean, variance = batch_moments(g, x)
    saved = [out, mean, inverse_deviation(g, variance, eps)]
    return saved if g.at.target is aten.native_batch_norm.default else [*saved, *running]


@translates(aten._native_batch_norm_legit.no_stats)
def native_batch_norm_no_stats(
    g: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> list[Tensor]:
    """_native_batch_norm_legit.no_stats(x, w?, b?, training, momentum, eps) → the same without running statistics."""
    return native_batch_norm(g, x, weight, bias, None, None, True, momentum, eps)
