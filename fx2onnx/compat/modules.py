"""Base classes of torch's layers."""

from __future__ import annotations

from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm
from torch.nn.modules.dropout import _DropoutNd as DropoutNd

__all__ = ["BatchNorm", "DropoutNd"]
