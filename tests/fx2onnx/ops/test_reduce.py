"""Sums, means, variances, any and all: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import INF, NAN, OWN, flags, normal, whole
from operators import check, check_both, check_further, nodes_of, report_of
from torch.export import Dim

X, N, B = normal(2, 3, 4), whole(2, 3, 4), flags(2, 3, 4)
LAST = {"options": {"opset_version": 26}}
WITH_NAN = torch.tensor([[1, NAN, 3, 5], [NAN, NAN, NAN, NAN], [-INF, INF, 0, -1], [INF, NAN, 1, 2], [4, 2, 3, 1]])
HUGE = torch.tensor([[2**60 + 1, 2**60 + 3, -5], [2**62, 1, 1]])
MASKED = torch.tensor([[-INF, -1000, -2000], [-INF] * 3, [INF, 1, 2], [-INF, -INF, NAN]])

FLOAT = {
    "sum": lambda x: x.sum(),
    "sum over some": lambda x: x.sum((0, -1)),
    "sum kept": lambda x: x.sum(-1, keepdim=True),
    "sum of none named": lambda x: x.sum([]),
    "sum as float64": lambda x: x.sum(dtype=torch.float64),
    "sum as int64": lambda x: x.sum(1, dtype=torch.int64),
    "prod": lambda x: x.prod(),
    "prod over one": lambda x: x.prod(-2, keepdim=True),
    "mean": lambda x: x.mean(),
    "mean over some": lambda x: x.mean((1, -1)),
    "mean as float64": lambda x: x.mean(0, dtype=torch.float64, keepdim=True),
    "nansum": lambda x: x.nansum(),
    "nanmean": lambda x: x.nanmean(-1),
    "all": lambda x: x.all(),
    "any along": lambda x: x.any(-1),
    "all over some": lambda x: torch.all(x, dim=(0, 1), keepdim=True),
    "any of no axes": lambda x: torch.any(x, dim=()),
    "count_nonzero": lambda x: torch.count_nonzero(x),
    "count_nonzero over some": lambda x: torch.count_nonzero(x, dim=(0, -1)),
    "var": lambda x: x.var(),
    "var biased": lambda x: x.var(unbiased=False),
    "var along": lambda x: x.var(-1, keepdim=True),
    "var corrected": lambda x: torch.var(x, dim=(0, 2), correction=0),
    "var corrected by a half": lambda x: torch.var(x, dim=-1, correction=0.5),
    "std": lambda x: x.std(),
    "std over some": lambda x: x.std((0, 1), unbiased=False),
    "var_mean": lambda x: torch.var_mean(x),
    "var_mean along": lambda x: torch.var_mean(x, dim=-1, unbiased=False, keepdim=True),
    "std_mean": lambda x: torch.std_mean(x, dim=0),
    "logsumexp": lambda x: x.logsumexp(-1),
    "logsumexp over some": lambda x: torch.special.logsumexp(x, (0, 1), keepdim=True),
}  # fmt: skip
WHOLE = {
    "sum": lambda x: x.sum(),
    "sum over some": lambda x: x.sum((0, -1)),
    "sum in the middle": lambda x: x.sum(1, keepdim=True),
    "sum as float32": lambda x: x.sum(-1, dtype=torch.float32),
    "sum as int32": lambda x: x.sum(-1, dtype=torch.int32),
    "sum as uint8": lambda x: x.sum(-1, dtype=torch.uint8),
    "prod": lambda x: x.prod(),
    "prod along": lambda x: x.prod(-1, keepdim=True),
    "mean as float32": lambda x: x.mean(1, dtype=torch.float32),
    "any": lambda x: x.any(),
    "all along": lambda x: x.all(1),
    "count_nonzero": lambda x: torch.count_nonzero(x, dim=1),
    "logsumexp": lambda x: x.logsumexp(-1),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT)
def test_of_floats(name: str) -> None:
    check_both(FLOAT[name], X)


@pytest.mark.parametrize("name", WHOLE)
def test_of_int64(name: str) -> None:
    check_both(WHOLE[name], N)


@pytest.mark.parametrize("name", ["sum", "sum over some", "prod", "prod along", "any", "all along", "count_nonzero"])
def test_of_booleans(name: str) -> None:
    check_both(WHOLE[name], B)


@pytest.mark.parametrize("name", ["sum", "mean over some", "var", "logsumexp"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_of_other_floats(name: str, dtype: torch.dtype) -> None:
    check(FLOAT[name], X.to(dtype), dynamic=True)


@pytest.mark.parametrize("name", ["sum", "prod along", "any"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
def test_of_other_integers(name: str, dtype: torch.dtype) -> None:
    check(WHOLE[name], N.to(dtype), dynamic=True)


@pytest.mark.parametrize("name", ["sum over some", "mean", "all", "any along", "var along"])
def test_at_the_last_opset(name: str) -> None:
    check_both(FLOAT[name], X, **LAST)


OF_NOTHING = {
    "sum": lambda x: x.sum(0),
    "sum of int64": lambda x: x.sum(0, dtype=torch.int64),
    "all sums of int64": lambda x: x.sum(dtype=torch.int64),
    "prod": lambda x: x.prod(),
    "prod of int64": lambda x: x.prod(0, dtype=torch.int64),
    "mean": lambda x: x.mean(0),
    "mean of all": lambda x: x.mean(),
    "any": lambda x: x.any(0),
    "all": lambda x: x.all(),
    "count_nonzero": lambda x: torch.count_nonzero(x),
    "var": lambda x: x.var(0),
    "var biased": lambda x: x.var(0, unbiased=False),
    "var_mean": lambda x: torch.var_mean(x, 0),
    "nanmean": lambda x: x.nanmean(0),
    "logsumexp": lambda x: x.logsumexp(0),
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
    [
        torch.sum,
        torch.prod,
        torch.mean,
        torch.var,
        torch.std_mean,
        torch.logsumexp,
        torch.any,
        torch.all,
        torch.nanmean,
        torch.count_nonzero,
    ],
)  # fmt: skip
def test_of_a_number(function: Callable[..., Any], dim: int) -> None:
    check(function, torch.tensor(-2.5), dim)


@pytest.mark.parametrize("function", [torch.sum, torch.mean, torch.std])
def test_of_all_of_a_number(function: Callable[..., Any]) -> None:
    check(function, torch.tensor(-2.5))
    check(function, torch.tensor([2.5]))


@pytest.mark.parametrize(
    "name",
    ["sum kept", "nansum", "nanmean", "logsumexp", "mean", "all"],
)  # fmt: skip
def test_nan_and_inf_as_in_torch(name: str) -> None:
    check_both(FLOAT[name], WITH_NAN)


@pytest.mark.parametrize(
    "function",
    [lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.sum(0), lambda x: x.prod(1)],
)  # fmt: skip
def test_int64_is_exact_and_wraps_around(function: Callable[..., Any]) -> None:
    check_both(function, HUGE)
    check(function, HUGE[None].expand(4, 2, 3).contiguous()[:, 0])


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (5, 2), (1, 4)])
def test_trace_of_any_matrix(sizes: tuple[int, int]) -> None:
    check_both(torch.trace, normal(*sizes))
    check(torch.trace, whole(*sizes))


def test_a_trace_of_nothing() -> None:
    check(torch.trace, torch.ones(0, 0))


def test_half_precision_is_added_in_single() -> None:
    large = torch.full((100, 3), 1000.0, dtype=torch.float16)
    check_both(lambda x: x.mean(0), large)
    check_both(lambda x: torch.linalg.vector_norm(x, 3, dim=0), large / 10)


@pytest.mark.parametrize(
    ("function", "nodes"),
    [
        (lambda x: x.sum(-1), ["ReduceSum"]),
        (lambda x: x.mean((0, 1)), ["ReduceMean"]),
        (lambda x: x.var(-1), ["ReduceMean", "Sub", "ReduceSumSquare", "Div"]),
    ],
)  # fmt: skip
def test_as_few_nodes_as_it_takes(function: Callable[..., Any], nodes: list[str]) -> None:
    assert nodes_of(function, X) == nodes


REDUCTIONS = [torch.sum, torch.mean, torch.amax, torch.logsumexp, torch.var, torch.linalg.vector_norm, torch.nansum, torch.std_mean]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_axes_of_any_shape(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axes = data.draw(st.lists(st.integers(0, len(sizes) - 1), unique=True, min_size=1, max_size=len(sizes)))
    dims = [axis - len(sizes) * data.draw(st.booleans()) for axis in axes]
    function, keep = data.draw(st.sampled_from(REDUCTIONS)), data.draw(st.booleans())
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64]))
    report_of(function, normal(*sizes, dtype=dtype), dim=dims, keepdim=keep, dynamic=data.draw(st.booleans())).check()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_sums_of_any_integers(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    axes = data.draw(st.lists(st.integers(-len(sizes), -1), unique=True, max_size=len(sizes)))
    x = whole(*sizes, low=-(2**62), high=2**62)
    report_of(torch.sum, x, dim=axes, keepdim=data.draw(st.booleans()), dynamic=data.draw(st.booleans())).check()


@pytest.mark.parametrize("function", [torch.logsumexp])
def test_logarithms_of_sums_are_right_after_minus_infinity(function: Any) -> None:
    check_both(lambda x: function(x, -1), MASKED, options={"fallback": False})


def test_an_empty_batch_loses_the_last_axis_too() -> None:
    check(lambda x: x.logsumexp(-1), torch.zeros(0, 3), options=OWN)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.int16])
def test_a_sum_of_int32_wraps(dtype: torch.dtype) -> None:
    numbers = torch.tensor([[(1 << 31) - 1, (1 << 31) - 1, 5], [1 << 30, 1 << 30, 1 << 30]]).to(dtype)
    check_both(lambda x: (x.sum(dtype=torch.int32), x.sum(1, dtype=torch.int32)), numbers)
