"""Batch norms in training mode with `momentum=None`: the cumulative average, with the number of batches as a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from ..compat.modules import BatchNorm
from .registry import register_patch


@register_patch(
    "cumulative_batch_norm",
    "torch.nn.modules.batchnorm._BatchNorm.forward",
    reason="with momentum=None torch reads the number of batches with item(), which torch.export does not support",
)
def _wrap_forward(forward: Callable[..., Any]) -> Callable[..., Any]:
    def of_either(self: BatchNorm, input: torch.Tensor) -> Any:
        return _normalise_cumulatively(self, input) if _averages_plainly(self) else forward(self, input)

    return of_either


def _averages_plainly(norm: BatchNorm) -> bool:
    return norm.momentum is None and norm.training and norm.track_running_stats and norm.num_batches_tracked is not None


def _normalise_cumulatively(norm: BatchNorm, x: torch.Tensor) -> torch.Tensor:
    """Normalise by the batch, and update the running averages with weight 1 / number of batches."""
    norm._check_input_dim(x)
    made = F.batch_norm(x, None, None, norm.weight, norm.bias, True, 0.0, norm.eps)
    assert isinstance(norm.num_batches_tracked, torch.Tensor)
    norm.num_batches_tracked.add_(1)
    axes = [axis for axis in range(x.dim()) if axis != 1]
    with torch.no_grad():
        variance, mean = torch.var_mean(x.detach(), axes)
        for average, value in ((norm.running_mean, mean), (norm.running_var, variance)):
            assert isinstance(average, torch.Tensor)
            part = norm.num_batches_tracked.to(average.dtype).reciprocal()
            average.copy_(value.to(average.dtype) * part + average * (1 - part))
    return made
