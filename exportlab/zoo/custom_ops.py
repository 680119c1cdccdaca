"""Ops that torch does not have. Not here: how an exporter is taught them, which the recipes show."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from .case import Declaration, case
from .specs import tensor


@cache
def scaled_sine() -> Callable[[Tensor, float], Tensor]:
    """The op `exportlab::scaled_sine`, registered at the first call."""

    @torch.library.custom_op("exportlab::scaled_sine", mutates_args=())
    def scaled_sine(x: Tensor, scale: float) -> Tensor:
        return torch.sin(x) * scale

    scaled_sine.register_fake(lambda x, scale: torch.empty_like(x))
    return scaled_sine


@case(dims={"batch": (4, 7, 1, 0)}, topics=("custom ops",))
def custom_op() -> Declaration:
    """An op that the exporter has never heard of: what does it say?"""
    op = scaled_sine()

    class ScaledSine(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return op(x, 0.5) + x

    return ScaledSine(), (tensor("batch", 3),)
