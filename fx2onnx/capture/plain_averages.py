"""Batch norms that train with `momentum=None`: the average of all batches so far, by a number of batches that stays a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def batches_counted_by_tensors() -> Iterator[None]:
    """Let such a batch norm, while it lasts, divide by the tensor that counts its batches, where torch reads a number of Python from it."""
    with patch.object(_BatchNorm, "forward", _of_either(_BatchNorm.forward)):
        yield


def _of_either(forward: Callable[..., Any]) -> Callable[..., Any]:
    def of_either(self: _BatchNorm, input: torch.Tensor) -> Any:
        return _averaged(self, input) if _averages_plainly(self) else forward(self, input)

    return of_either


def _averages_plainly(norm: _BatchNorm) -> bool:
    return norm.momentum is None and norm.training and norm.track_running_stats and norm.num_batches_tracked is not None


def _averaged(norm: _BatchNorm, x: torch.Tensor) -> torch.Tensor:
    """Normalise by the batch, and take its mean and variance into the averages: one part in as many as there are batches."""
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
