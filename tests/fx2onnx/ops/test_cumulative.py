"""Running sums, products and extremes: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import INF, NAN, flags, normal, whole
from operators import check, check_both, check_further, nodes_of
from torch.export import Dim

X, N, B = normal(2, 3, 4), whole(2, 3, 4), flags(2, 3, 4)
LAST = {"options": {"opset_version": 26}}
WITH_NAN = torch.tensor([[1, NAN, 3, 5], [NAN, NAN, NAN, NAN], [-INF, INF, 0, -1], [INF, NAN, 1, 2], [4, 2, 3, 1]])
HUGE = torch.tensor([[2**60 + 1, 2**60 + 3, -5], [2**62, 1, 1]])
MASKED = torch.tensor([[-INF, -1000, -2000], [-INF] * 3, [INF, 1, 2], [-INF, -INF, NAN]])

FLOAT = {
    "cumsum": lambda x: x.cumsum(-1),
    "cumsum as float64": lambda x: x.cumsum(1, dtype=torch.float64),
    "cumprod": lambda x: x.cumprod(1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(-1),
}  # fmt: skip
WHOLE = {
    "cumsum": lambda x: x.cumsum(-1),
    "cumsum as int32": lambda x: x.cumsum(-1, dtype=torch.int32),
    "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(0),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT)
def test_of_floats(name: str) -> None:
    check_both(FLOAT[name], X)


@pytest.mark.parametrize("name", WHOLE)
def test_of_int64(name: str) -> None:
    check_both(WHOLE[name], N)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax"])
def test_of_booleans(name: str) -> None:
    check_both(WHOLE[name], B)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_of_other_floats(name: str, dtype: torch.dtype) -> None:
    check(FLOAT[name], X.to(dtype), dynamic=True)


@pytest.mark.parametrize("name", ["cumsum", "cummax"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
def test_of_other_integers(name: str, dtype: torch.dtype) -> None:
    check(WHOLE[name], N.to(dtype), dynamic=True)


@pytest.mark.parametrize("name", ["cumprod", "cummax"])
def test_at_the_last_opset(name: str) -> None:
    check_both(FLOAT[name], X, **LAST)


OF_NOTHING = {
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "cumprod across": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(0),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
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
    [torch.cumsum, torch.cumprod, torch.cummax, torch.logcumsumexp],
)  # fmt: skip
def test_of_a_number(function: Callable[..., Any], dim: int) -> None:
    check(function, torch.tensor(-2.5), dim)


@pytest.mark.parametrize(
    "name",
    ["cumsum", "cummax", "cummin", "logcumsumexp"],
)  # fmt: skip
def test_nan_and_inf_as_in_torch(name: str) -> None:
    check_both(FLOAT[name], WITH_NAN)


@pytest.mark.parametrize(
    "function",
    [lambda x: x.cumsum(1), lambda x: x.cumprod(0)],
)  # fmt: skip
def test_int64_is_exact_and_wraps_around(function: Callable[..., Any]) -> None:
    check_both(function, HUGE)
    check(function, HUGE[None].expand(4, 2, 3).contiguous()[:, 0])


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin])
def test_the_index_among_equal_elements_is_that_of_torch(function: Callable[..., Any]) -> None:
    check_both(function, torch.tensor([[1, 3, 3, 2, 3], [0, 0, 0, 0, 0], [2, 1, 1, 2, 1]]), 1)
    check_both(lambda x: x.argmax(1), torch.tensor([[1.0, 3, 3, 2, 3], [0, 0, 0, 0, 0], [2, 1, 1, 2, 1]]))


@pytest.mark.parametrize(
    ("function", "nodes"),
    [(lambda x: x.cumsum(0), ["CumSum"])],
)  # fmt: skip
def test_as_few_nodes_as_it_takes(function: Callable[..., Any], nodes: list[str]) -> None:
    assert nodes_of(function, X) == nodes


@pytest.mark.parametrize("function", [torch.logcumsumexp])
def test_logarithms_of_sums_are_right_after_minus_infinity(function: Any) -> None:
    check_both(lambda x: function(x, -1), MASKED, options={"fallback": False})


def test_logarithms_of_sums_keep_what_is_far_below_one() -> None:
    x = torch.tensor([0.0, -16.0, -18.0])
    check_further(lambda x: x.logcumsumexp(0), (x,), (x,), ({},), rtol=1e-5, atol=0.0)
