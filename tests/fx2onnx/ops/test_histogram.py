"""Histograms: counts, weights and densities, by a number of bins, a range or edges, of one axis and of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import INF, OWN, normal
from operators import check, check_further
from torch.export import Dim

EDGES = torch.tensor([-1.0, -0.5, 0.0, 0.25, 2.0])
WAYS: dict[str, Callable[..., Any]] = {
    "a number of bins": lambda x: tuple(torch.histogram(x, 7)),
    "a range": lambda x: tuple(torch.histogram(x, 4, range=(-1.0, 0.5))),
    "weights": lambda x: tuple(torch.histogram(x, 5, weight=x.abs())),
    "a density": lambda x: tuple(torch.histogram(x, 3, weight=x.abs(), density=True)),
    "edges": lambda x: tuple(torch.histogram(x, EDGES.to(x.dtype), density=True)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", WAYS)
def test_of_one_axis(name: str, dtype: torch.dtype) -> None:
    for x in (normal(40), normal(3, 5, 2), torch.tensor([-1.0, -0.5, 0.0, 0.25, 2.0, 2.5, -7.0])):
        check(WAYS[name], x.to(dtype), options=OWN)


@pytest.mark.parametrize("name", WAYS)
def test_at_sizes_that_the_export_never_saw(name: str) -> None:
    for further in (normal(100), torch.ones(4), torch.zeros(1), torch.zeros(0)):
        if "density" not in name or len(further):
            check_further(WAYS[name], (normal(6),), (further,), ({0: Dim("n")},))


def test_infinities_are_in_no_bin() -> None:
    check_further(lambda x, e: tuple(torch.histogram(x, e)), *[(torch.tensor([INF, -INF, 0.1, 2.0]), EDGES)] * 2, ({}, {}))


@pytest.mark.parametrize("options", [{}, {"density": True}, {"range": (-1.0, 1.0, -2.0, 0.5, 0.0, 3.0)}], ids=str)
def test_of_several_columns(options: dict[str, Any]) -> None:
    check(lambda x: torch.histogramdd(x, [3, 2, 4], **options), normal(30, 3))
    check(lambda x: torch.histogramdd(x, [EDGES, EDGES[:3], EDGES[1:]], **options | {"range": None}), normal(5, 6, 3))
    check(lambda x: torch.histogramdd(x, 3, weight=x[..., 0].abs(), **options), normal(30, 3))
