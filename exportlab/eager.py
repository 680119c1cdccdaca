"""Running a module as it is, on copies, so that neither it nor its arguments change."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from .cases import Sample


def fresh(module: nn.Module) -> nn.Module:
    """Return a copy of the module with buffers and attributes of its own; parameters are shared, not copied."""
    return copy.deepcopy(module, {id(p): p for p in module.parameters()})


def copied(sample: Sample) -> Sample:
    """Return a deep copy of the arguments; a tensor that was computed from others is copied without what it was computed from."""
    computed = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor) and not leaf.is_leaf]
    return copy.deepcopy(sample, {id(tensor): tensor.detach().clone() for tensor in computed})


def last_returned(callee: Callable[..., Any], calls: Sequence[Sample]) -> Any:
    """Return what the last of these calls returns, in inference mode; each gets copies, since a module may write into its inputs."""
    with torch.inference_mode():
        results = [callee(*s.args, **s.kwargs) for s in map(copied, calls)]
    return results[-1]


def called_once(module: nn.Module, sample: Sample) -> Any:
    """Return what a copy of the module returns for copies of these arguments, in inference mode."""
    return last_returned(fresh(module), (sample,))
