"""Sizes of results by rule, against those that torch gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import sympy
import torch
from modules import Of

from exportlab import to_onnx, verify
from fx2onnx.build.values import Size
from fx2onnx.capture.running.operator_sizes import CONVOLUTIONS, RULES, OperatorSizes
from fx2onnx.capture.running.program import Described

aten = torch.ops.aten
N = sympy.Symbol("n", integer=True, positive=True)


def _told(op: Any, x: torch.Tensor, sizes: tuple[Size, ...], *further: Any) -> Any:
    graph = torch.fx.Graph()
    nodes = [graph.placeholder("x"), *(graph.placeholder("w") for given in further if isinstance(given, torch.Tensor))]
    nodes[0].meta["val"] = Described.of(sizes, x.dtype, 1)
    for node, weight in zip(nodes[1:], (given for given in further if isinstance(given, torch.Tensor)), strict=True):
        node.meta["val"] = Described.as_is(weight)
    rest = iter(nodes[1:])
    args = [next(rest) if isinstance(given, torch.Tensor) else given for given in further]
    return RULES[op](graph.call_function(op, (nodes[0], *args)))


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("rest", [(), ([2], [1]), ([3], [0], [2]), ([1], [2], [1], 2)], ids=str)
def test_a_convolution_is_as_long_as_torch_makes_it(axes: int, rest: tuple[Any, ...]) -> None:
    op, groups = CONVOLUTIONS[axes - 1], rest[3] if len(rest) > 3 else 1
    x, weight = torch.empty(2, 4, *range(9, 9 + axes)), torch.empty(6, 4 // groups, *range(1, 1 + axes))
    assert _told(op, x, tuple(x.shape), weight, None, *rest) == tuple(op(x, weight, None, *rest).shape)


@pytest.mark.parametrize("size", [7, 8, 20, 101])
def test_a_size_that_moves_is_an_expression_of_it(size: int) -> None:
    x, weight, rest = torch.empty(2, 4, 9), torch.empty(6, 4, 3), ([2], [1], [2])
    batch, channels, length = _told(aten.conv1d.default, x, (N, 4, N + 3), weight, None, *rest)
    made = torch.conv1d(torch.empty(size, 4, size + 3), weight, None, *rest)
    assert (batch, channels, length.subs(N, size)) == (N, *made.shape[1:])


def test_what_is_no_plain_window_is_left_to_torch() -> None:
    x, weight = torch.empty(2, 4, 9), torch.empty(6, 4, 3)
    assert _told(aten.conv1d.default, x, (2, 4, 9), weight, None, [N]) is None
    assert _told(aten.adaptive_avg_pool2d.default, x, (2, 4, 9), [N, 1]) is None
    assert _told(aten.adaptive_avg_pool2d.default, x, (N, 4, 9), [1, 3]) == (N, 1, 3)


@pytest.mark.parametrize(("bounds", "length"), [((N,), N), ((2, N + 2), N), ((3, 5), 2)], ids=str)
def test_a_range_is_as_long_as_its_bounds_are_apart(bounds: tuple[Size, ...], length: Size) -> None:
    op = aten.arange.default if len(bounds) == 1 else aten.arange.start
    assert RULES[op](torch.fx.Graph().call_function(op, bounds)) == (length,)


@pytest.mark.parametrize("bounds", [(2.5,), (3, N)], ids=str)
def test_a_range_whose_length_is_not_plain_is_left_to_torch(bounds: tuple[Any, ...]) -> None:
    op = aten.arange.default if len(bounds) == 1 else aten.arange.start
    assert RULES[op](torch.fx.Graph().call_function(op, bounds)) is None


def test_a_test_is_tried_at_other_sizes_of_what_it_asks_for() -> None:
    example = dict(zip(sympy.symbols("a:8", integer=True, positive=True), range(2, 10), strict=True))
    first, second, *others = example
    tried = list(OperatorSizes(SimpleNamespace(example=example), [])._larger(first + second > 9))
    assert len(tried) == len({(at[first], at[second]) for at in tried}) == 16
    assert all(at[other] == example[other] for at in tried for other in others)


RANGES = {
    "of a little more than all runs tell": lambda x: torch.arange(0, x.shape[0] * 1.01),
    "of a fraction": lambda x: torch.arange(0, 1, 1 / x.shape[0]),
    "backwards": lambda x: torch.arange(1, 0, -1 / x.shape[0]),
    "from a half": lambda x: torch.arange(0.5, x.shape[0] * 1.01, 0.5),
    "of seven": lambda x: torch.arange(0, x.shape[0], x.shape[0] / 7),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_range_of_fractions_is_as_long_as_float64_makes_it(name: str) -> None:
    model = Of(lambda x: RANGES[name](x) + x.sum())
    program = to_onnx(model, (torch.rand(8, 2),), dynamic_shapes=({0: "n"},), capture="run")
    report = verify(program, model, [(torch.rand(n, 2),) for n in (8, 1, 5, 49, 98, 101, 250)])
    assert (report.outcome, program.report.limits) == ("ok", ()), report


def _einsum(equation: str, *sizes: tuple[Size, ...]) -> Any:
    graph = torch.fx.Graph()
    nodes = [graph.placeholder("x") for _ in sizes]
    for node, given in zip(nodes, sizes, strict=True):
        node.meta["val"] = Described.of(given, torch.float32, 1)
    return RULES[aten.einsum.default](graph.call_function(aten.einsum.default, (equation, nodes)))


@pytest.mark.parametrize(
    ("equation", "sizes"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("bhd, bd -> b", ((2, 3, 4), (2, 4))),
        ("ij,jk->ikj", ((2, 1), (3, 4))),
        ("ii->i", ((3, 3),)),
        ("ij->", ((2, 3),)),
    ],
    ids=str,
)
def test_an_einsum_has_the_sizes_of_its_letters(equation: str, sizes: tuple[tuple[int, ...], ...]) -> None:
    assert _einsum(equation, *sizes) == tuple(torch.einsum(equation, *map(torch.empty, sizes)).shape)


def test_an_einsum_of_moving_sizes_has_them_as_they_are() -> None:
    assert _einsum("bij,bjk->bik", (1, N, 3), (2, 3, N + 1)) == (2, N, N + 1)
    assert _einsum("...i->...", (2, N)) is None
    assert _einsum("ij,jk", (2, N), (N, 3)) is None


def test_a_running_sum_is_as_large_as_what_it_sums() -> None:
    assert _told(aten.cumsum.default, torch.empty(2, 5), (2, N), 1) == (2, N)
