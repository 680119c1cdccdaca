"""Tensors that operators are tried on: the values that hurt, and random ones of given sizes, the same each time."""

from __future__ import annotations

import math
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

OWN = {"fallback": False}  # options of an export that takes no translation but ours
NAN, INF = math.nan, math.inf
EDGES = torch.tensor([NAN, INF, -INF, -0.0, 0.0, 1e-7, -1e-7, 0.3, -0.7, 1.0, -1.0, 2.5, -2.5, 3.0, -6.0, 30.0, -30.0])
FINITE = EDGES[3:].contiguous()
WHOLE = torch.tensor([[-7, -3, -1], [0, 2, 5]])
TRUTH = torch.tensor([[True, False, True], [False, False, True]])
LEFT, RIGHT = (t.contiguous() for t in torch.meshgrid(EDGES[:12], EDGES[:12] * 3, indexing="ij"))
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]


def normal(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return normally distributed numbers."""
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes))).to(dtype)


def halves(step: float) -> torch.Tensor:
    """Values next to each half of a step, one float below and one above among them, and those that no grid has."""
    middle = ((torch.arange(-300, 300, dtype=torch.float64) + 0.5) * step).float()
    beyond = torch.tensor([0.0, -0.0, INF, -INF, NAN, 3e38, -3e38, 1e-40])
    return torch.cat([middle, *(torch.nextafter(middle, torch.tensor(end)) for end in (INF, -INF)), beyond])


def whole(*sizes: int, low: int = -9, high: int = 9, dtype: torch.dtype = torch.int64) -> Tensor:
    """Return whole numbers from `low` up to, not including, `high`."""
    return torch.randint(low, high, sizes, generator=torch.Generator().manual_seed(sum(sizes))).to(dtype)


def flags(*sizes: int) -> Tensor:
    """Return booleans, about a third of them true."""
    return whole(*sizes) > 3


def count(*sizes: int) -> Tensor:
    """Return 0, 1, 2, …"""
    return torch.arange(torch.Size(sizes).numel()).reshape(sizes)


def ints(*numbers: Any) -> Tensor:
    """Return these, as int64."""
    return torch.tensor(numbers, dtype=torch.int64)


@st.composite
def operands(draw: st.DrawFn) -> list[Any]:
    """Draw two tensors that broadcast, of any two dtypes, one of which may be a number."""
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3))
    values = st.sampled_from([0, 1, 2, 3, 4, 7])
    made: list[Any] = []
    for _ in range(2):
        own = [draw(st.sampled_from([1, size])) for size in sizes[draw(st.integers(0, len(sizes))) :]]
        elements = [draw(values) for _ in range(math.prod(own))]
        made.append(torch.tensor(elements, dtype=torch.float64).reshape(own).to(draw(st.sampled_from(DTYPES))))
    number = draw(st.sampled_from([None, None, 2, 0.5, True]))
    return made if number is None else [made[0], number]
