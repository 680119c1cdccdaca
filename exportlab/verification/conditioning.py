"""Measure how much eager's result changes for inputs one rounding away. It limits the error where numbers cancel out or tie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import Sample
from ..eager import fresh, run_calls
from .conditions import Conditions, Decisions
from .difference import distances
from .eager_timeout import time_limit
from .values import a_rounding_away

NUDGES = 4
AS_MUCH = 8.0  # the exported model may differ this many times as much, because it rounds more than once


def collect_decisions(module: nn.Module, calls: Sequence[Sample]) -> Decisions:
    """Return the value-dependent decisions of the module in these calls. Errors of the module are passed through."""
    return Conditions().watch(module, calls)


def is_ill_conditioned(module: nn.Module, calls: Sequence[Sample], expected: Any, actual: Any, *, patience: float) -> bool:
    """Whether eager's outputs change about as much as the model's error, without changed conditions and not randomly."""
    off = _measure_distances(expected, actual)
    floor = [0.0] * len(off)
    try:
        conditions = _conditions(module, calls)
        if any(_measure_distances(expected, run_calls(fresh(module), calls))):
            return False
        for seed in range(NUDGES):
            nudged = tuple(a_rounding_away(call, seed) for call in calls)
            if _conditions(module, nudged) == conditions:
                with time_limit(patience):
                    moved = _measure_distances(expected, run_calls(fresh(module), nudged))
                floor = [max(a, b) for a, b in zip(floor, moved, strict=True)]
    except Exception:  # noqa: BLE001 - eager rejects the changed inputs, or cannot be observed: not proven
        return False
    return all(a <= AS_MUCH * b and a < torch.inf for a, b in zip(off, floor, strict=True))


def _conditions(module: nn.Module, calls: Sequence[Sample]) -> Decisions:
    return [(site, value) for site, value in collect_decisions(module, calls) if site.kind != "mask"]


def _measure_distances(expected: Any, actual: Any) -> list[float]:
    """Return the largest distance for each output; infinite if dtypes, shapes or non-finite elements differ."""
    pairs = zip(pytree.tree_leaves(expected), pytree.tree_leaves(actual), strict=True)
    return [_largest(a, b) for a, b in pairs]


def _largest(a: Any, b: Any) -> float:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return 0.0 if a == b else torch.inf
    if a.shape != b.shape or a.dtype != b.dtype:
        return torch.inf
    return float(distances(a, b).max()) if a.numel() else 0.0
