"""Which axes without a name are tied, and that runs begin with more than one element along each axis."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from fx2onnx import to_onnx


class Added(nn.Module):
    """Three tensors of one shape, as ids, mask and token types are."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a.cumsum(1) + b * c


class Pairs(nn.Module):
    """The first two and the last two of four tensors are added."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (a + c).cumsum(1), (b + d).cumsum(1)


class Apart(nn.Module):
    """Nothing compares two tensors."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a.cumsum(1), b.cumsum(1)


def _shapes(model: nn.Module, count: int, rows: int = 2) -> list[Any]:
    args = tuple(torch.randn(rows, 5) for _ in range(count))
    shapes = tuple({0: Dim.DYNAMIC, 1: Dim.DYNAMIC} for _ in args)
    exported = to_onnx(model, args, dynamic_shapes=shapes, capture="run")
    return [tuple(map(str, given.shape)) for given in exported.model.graph.inputs]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_axes_that_have_to_agree_have_one_symbol(rows: int) -> None:
    first, *others = _shapes(Added(), 3, rows)
    assert others == [first, first]
    assert len(set(first)) == 2


def test_axes_are_tied_to_those_alone_that_they_have_to_agree_with() -> None:
    a, b, c, d = _shapes(Pairs(), 4)
    assert (a, b) == (c, d)
    assert not set(a) & set(b)


def test_axes_that_may_differ_are_not_tied() -> None:
    a, b = _shapes(Apart(), 2)
    assert not set(a) & set(b)
