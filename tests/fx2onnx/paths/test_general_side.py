"""A test of a size is no If where the program of one side is right on both; a difference beyond a number in a graph is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from modules import Of
from torch import Tensor
from torch.nn import functional as F

from fx2onnx import to_onnx
from fx2onnx.guards.dims import DynamicDim
from fx2onnx.paths.general_side import LARGEST, telling_settings
from fx2onnx.trace.size_domain import SizeDomain

X = torch.randn(6, 4)
SIZES = (*range(1, 60), 89, 90, 91, 99, 100, 101, 128, 149, 150, 151, 300, 499, 500, 501, 640, 2999, 3000, 3001, 3500)


def padded(x: Tensor) -> Tensor:
    return F.pad(x, (0, 0, 0, -x.shape[0] % 8)) if x.shape[0] % 8 else x


ONE_SIDE: dict[str, Callable[[Tensor], Tensor]] = {
    "padded to whole parts": lambda x: padded(x).reshape(-1, 8, 4).sum(1),
    "the least of two numbers": lambda x: x[: min(x.shape[0], 50)],
    "whole parts": lambda x: x[: x.shape[0] // 4 * 4].reshape(-1, 4, 4) if x.shape[0] > 3 else x[:0].reshape(0, 4, 4),
    "a mask if there are several": lambda x: x if x.shape[0] == 1 else x * torch.ones(x.shape[0], 1),
}
BOTH_SIDES: dict[str, Callable[[Tensor], Tensor]] = {
    "more than the samples": lambda x: x if x.shape[0] > 510 else x[:400],
    "the first": lambda x: x if x.shape[0] > 3000 else x[:100],
    "the sum of the first": lambda x: x.sum() if x.shape[0] > 3000 else x[:100].sum(),
    "the first of both": lambda x: torch.cat([x, x]) if x.shape[0] > 3000 else torch.cat([x, x])[:300],
    "padded, or the first": lambda x: (padded(x) if x.shape[0] % 8 else x[:100]).sum(0),
    "times its size": lambda x: x * x.shape[0] if x.shape[0] > 5 else x * 3,
    "times hundreds": lambda x: x * (x.shape[0] // 40) if x.shape[0] > 500 else x * 0,
    "a limit of values": lambda x: x * 2 if x.shape[0] > 5 else (x * 2).clamp(max=100),
    "another limit of values": lambda x: x.clamp(max=200.0) if x.shape[0] > 5 else x.clamp(max=100.0),
    "another whole limit of values": lambda x: x.clamp(max=200) if x.shape[0] > 5 else x.clamp(max=100),
    "a tensor as a limit of values": lambda x: x.minimum(torch.tensor(200.0)) if x.shape[0] > 5 else x.minimum(torch.tensor(100.0)),
    "a size as a limit of values": lambda x: x.clamp(max=x.shape[0] + 50) if x.shape[0] > 5 else x.clamp(max=100),
    "a row by its size": lambda x: x[:1] if x.shape[0] > 500 else x[x.shape[0] // 90 : x.shape[0] // 90 + 1],
}


def check(function: Callable[[Tensor], Tensor]) -> tuple[str, ...]:
    """Return the branches of an export that is right at all sizes."""
    program = to_onnx(Of(function), (torch.randn(6, 4),), dynamic_shapes=({0: "rows"},), capture="run")
    for size in SIZES:
        x = torch.randn(size, 4) * (100 if size % 2 else 1)
        torch.testing.assert_close(program(x)[0], function(x), rtol=1e-4, atol=1e-2)
    return program.report.branches


def test_sides_are_not_compared_at_large_sizes() -> None:
    axes = SizeDomain.of([DynamicDim(id(X), 0, "rows")], [X])
    (rows,) = axes.example
    assert telling_settings(axes, [])
    assert not telling_settings(replace(axes, conditions=(rows > LARGEST - 10,)), [])


@pytest.mark.parametrize("name", ONE_SIDE)
def test_one_side_is_enough_if_it_is_right_on_both(name: str) -> None:
    assert not check(ONE_SIDE[name])


@pytest.mark.parametrize("name", BOTH_SIDES)
def test_sides_that_differ_at_some_size_are_both_exported(name: str) -> None:
    assert check(BOTH_SIDES[name])
