"""The largest, the smallest and the middle, and where they stand: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import INF, NAN, OWN, flags, normal, whole
from operators import check, check_both, check_further, nodes_of
from torch.export import Dim
from torch.nn import functional as F

X, N, B = normal(2, 3, 4), whole(2, 3, 4), flags(2, 3, 4)
LAST = {"options": {"opset_version": 26}}
WITH_NAN = torch.tensor([[1, NAN, 3, 5], [NAN, NAN, NAN, NAN], [-INF, INF, 0, -1], [INF, NAN, 1, 2], [4, 2, 3, 1]])
HUGE = torch.tensor([[2**60 + 1, 2**60 + 3, -5], [2**62, 1, 1]])

FLOAT = {
    "amax": lambda x: x.amax(),
    "amax over some": lambda x: x.amax((0, 2), keepdim=True),
    "amin": lambda x: x.amin(-1),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "max along": lambda x: x.max(-1),
    "min along": lambda x: x.min(1, keepdim=True),
    "aminmax": lambda x: torch.aminmax(x),
    "aminmax along": lambda x: torch.aminmax(x, dim=-1, keepdim=True),
    "argmax": lambda x: x.argmax(),
    "argmax kept": lambda x: x.argmax(keepdim=True),
    "argmax along": lambda x: x.argmax(-1),
    "argmin along": lambda x: x.argmin(1, keepdim=True),
    "median": lambda x: x.median(),
    "median along": lambda x: x.median(-1),
    "median kept": lambda x: x.median(1, keepdim=True),
    "nanmedian": lambda x: x.nanmedian(),
    "nanmedian along": lambda x: x.nanmedian(0),
    "quantile": lambda x: x.quantile(0.3),
    "quantile along": lambda x: x.quantile(0.75, dim=1, keepdim=True, interpolation="midpoint"),
    "quantile lower": lambda x: x.quantile(0.41, dim=0, interpolation="lower"),
}  # fmt: skip
WHOLE = {
    "amax": lambda x: x.amax((0, 2)),
    "max along": lambda x: x.max(1),
    "min": lambda x: x.min(),
    "argmin": lambda x: x.argmin(-1, keepdim=True),
    "median": lambda x: x.median(),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT)
def test_of_floats(name: str) -> None:
    check_both(FLOAT[name], X)


@pytest.mark.parametrize("name", WHOLE)
def test_of_int64(name: str) -> None:
    check_both(WHOLE[name], N)


@pytest.mark.parametrize("name", ["amax"])
def test_of_booleans(name: str) -> None:
    check_both(WHOLE[name], B)


@pytest.mark.parametrize("name", ["max along", "median"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_of_other_floats(name: str, dtype: torch.dtype) -> None:
    check(FLOAT[name], X.to(dtype), dynamic=True)


@pytest.mark.parametrize("name", ["amax", "max along"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
def test_of_other_integers(name: str, dtype: torch.dtype) -> None:
    check(WHOLE[name], N.to(dtype), dynamic=True)


@pytest.mark.parametrize("name", ["max along", "median"])
def test_at_the_last_opset(name: str) -> None:
    check_both(FLOAT[name], X, **LAST)


OF_NOTHING = {
    "amax of the other axis": lambda x: x.amax(1),
    "argmax of the other axis": lambda x: x.argmax(1),
}  # fmt: skip


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", OF_NOTHING)
def test_of_nothing(name: str, opset: int) -> None:
    check(OF_NOTHING[name], torch.zeros(0, 3), options={"opset_version": opset})
    check_further(OF_NOTHING[name], (torch.zeros(2, 3),), (torch.zeros(0, 3),), ({0: Dim.DYNAMIC},), opset_version=opset)
    check_further(OF_NOTHING[name], (torch.zeros(2, 3),), (torch.ones(1, 3),), ({0: Dim.DYNAMIC},), opset_version=opset)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize(
    "function",
    [torch.amax, torch.argmax, torch.max, torch.min, torch.median],
)  # fmt: skip
def test_of_a_number(function: Callable[..., Any], dim: int) -> None:
    check(function, torch.tensor(-2.5), dim)


@pytest.mark.parametrize("function", [torch.max, torch.argmin, torch.median, torch.aminmax])
def test_of_all_of_a_number(function: Callable[..., Any]) -> None:
    check(function, torch.tensor(-2.5))
    check(function, torch.tensor([2.5]))


@pytest.mark.parametrize(
    "name",
    ["amax", "amin", "max", "nanmedian", "median", "quantile", "aminmax"],
)  # fmt: skip
def test_nan_and_inf_as_in_torch(name: str) -> None:
    check_both(FLOAT[name], WITH_NAN)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.amax(1),
        lambda x: x.max(0).values,
        lambda x: x.median(1).values,
        lambda x: x.nanmedian(1)[0],
        lambda x: x.max(1),
        lambda x: x.min(0, keepdim=True),
        lambda x: (x.argmax(), x.argmin(1)),
    ],
)
def test_values_and_places_along_an_axis_with_nan(function: Callable[..., Any]) -> None:
    check_both(function, WITH_NAN)


@pytest.mark.parametrize(
    "function",
    [lambda x: x.amax(1)],
)  # fmt: skip
def test_int64_is_exact_and_wraps_around(function: Callable[..., Any]) -> None:
    check_both(function, HUGE)
    check(function, HUGE[None].expand(4, 2, 3).contiguous()[:, 0])


@pytest.mark.parametrize("function", [torch.max, torch.min])
def test_the_index_among_equal_elements_is_that_of_torch(function: Callable[..., Any]) -> None:
    check_both(function, torch.tensor([[1, 3, 3, 2, 3], [0, 0, 0, 0, 0], [2, 1, 1, 2, 1]]), 1)
    check_both(lambda x: x.argmax(1), torch.tensor([[1.0, 3, 3, 2, 3], [0, 0, 0, 0, 0], [2, 1, 1, 2, 1]]))


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(interpolation: str) -> None:
    some = torch.tensor([0.0, 0.45, 1.0])
    check(torch.quantile, X, some, -2, interpolation=interpolation, dynamic=True)
    check(torch.quantile, X, some, keepdim=True, interpolation=interpolation)
    check(torch.quantile, X, torch.tensor(0.3), 0, keepdim=True, interpolation=interpolation)


@pytest.mark.parametrize(
    ("function", "nodes"),
    [
        (lambda x: x.long().max(-1).indices, ["Cast", "ArgMax"]),
        (lambda x: x.max(-1).indices, ["ReduceL1", "IsNaN", "ArgMax", "IsNaN", "Cast", "ArgMax", "Where"]),
    ],
)  # fmt: skip
def test_as_few_nodes_as_it_takes(function: Callable[..., Any], nodes: list[str]) -> None:
    assert nodes_of(function, X) == nodes


def test_an_empty_batch_loses_the_last_axis_too() -> None:
    check(lambda x: (x.argmax(-1), x.argmax(-1, True), x.max(-1)), torch.zeros(0, 3), options=OWN)


ALIKE_ABOVE = whole(60, 17, low=2**40, high=2**40 + 2**32)  # numbers that differ in their lower 32 bits alone
COMPARED = {
    "amax": lambda x: (x.amax(1), x.amax(0, keepdim=True), x.amax((0, 1)), x.max(), x.view(5, 12, 17).amax((0, 2))),
    "amin": lambda x: (x.amin(1, keepdim=True), x.amin(0), x.min(), torch.aminmax(x, dim=1), x.view(5, 12, 17).amin((2, 0), True)),
    "max along": lambda x: (*x.max(1), *x.min(0)),
    "clamp": lambda x: (x.clamp(2**40 + 5, 2**40 + 2**31), F.hardtanh(x, 0, 2**40 + 2**31)),
    "relu": lambda x: (F.relu(x - 2**40), F.relu6(x - 2**40), F.relu(2**40 - x)),
    "sign": lambda x: (torch.sign(x - 2**40), torch.sgn(2**40 - x)),
}


@pytest.mark.parametrize("name", COMPARED)
def test_int64_is_compared_by_all_of_its_bits(name: str) -> None:
    check_both(COMPARED[name], ALIKE_ABOVE, options=OWN)


def test_the_extremes_of_no_rows() -> None:
    check_both(lambda x: (x.amax(1), x.amin(1, keepdim=True)), ALIKE_ABOVE[:0], options=OWN)
