"""Reductions and running operators: each as a module of its own, right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import check, check_both, report_of
from torch import Tensor

from fx2onnx import to_onnx

NAN, INF = float("nan"), float("inf")
LAST = {"options": {"opset_version": 26}}


def normal(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(len(sizes))).to(dtype)


def whole(*sizes: int, low: int = -9, high: int = 9, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(low, high, sizes, generator=torch.Generator().manual_seed(len(sizes))).to(dtype)


def flags(*sizes: int) -> Tensor:
    return whole(*sizes) > 3


X, N, B = normal(2, 3, 4), whole(2, 3, 4), flags(2, 3, 4)
POSITIVE = X.abs() + 0.1
WITH_NAN = torch.tensor([[1, NAN, 3, 5], [NAN, NAN, NAN, NAN], [-INF, INF, 0, -1], [INF, NAN, 1, 2], [4, 2, 3, 1]])
HUGE = torch.tensor([[2**60 + 1, 2**60 + 3, -5], [2**62, 1, 1]])

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
    "norm": lambda x: x.norm(),
    "norm along": lambda x: x.norm(dim=-1, keepdim=True),
    "norm fro": lambda x: torch.norm(x, p="fro", dim=(0, 1)),
    "vector norm 0": lambda x: torch.linalg.vector_norm(x, 0, dim=1),
    "vector norm 1": lambda x: torch.linalg.vector_norm(x, 1),
    "vector norm 3": lambda x: torch.linalg.vector_norm(x, 3, dim=(0, 2)),
    "vector norm inf": lambda x: torch.linalg.vector_norm(x, INF, dim=-1),
    "vector norm -inf": lambda x: torch.linalg.vector_norm(x, -INF, dim=-1),
    "vector norm as float64": lambda x: torch.linalg.vector_norm(x, dtype=torch.float64),
    "linalg.norm": lambda x: torch.linalg.norm(x),
    "linalg.norm of matrices": lambda x: torch.linalg.norm(x, "fro", dim=(-1, 0)),
    "matrix norm": lambda x: torch.linalg.matrix_norm(x),
    "dist": lambda x: torch.dist(x, x.sum(0, keepdim=True)),
    "dist 1, broadcast": lambda x: torch.dist(x.amax(0), x, 1),
    "cumsum": lambda x: x.cumsum(-1),
    "cumsum as float64": lambda x: x.cumsum(1, dtype=torch.float64),
    "cumprod": lambda x: x.cumprod(1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(-1),
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
    "sum": lambda x: x.sum(),
    "sum over some": lambda x: x.sum((0, -1)),
    "sum in the middle": lambda x: x.sum(1, keepdim=True),
    "sum as float32": lambda x: x.sum(-1, dtype=torch.float32),
    "sum as int32": lambda x: x.sum(-1, dtype=torch.int32),
    "sum as uint8": lambda x: x.sum(-1, dtype=torch.uint8),
    "prod": lambda x: x.prod(),
    "prod along": lambda x: x.prod(-1, keepdim=True),
    "mean as float32": lambda x: x.mean(1, dtype=torch.float32),
    "amax": lambda x: x.amax((0, 2)),
    "max along": lambda x: x.max(1),
    "min": lambda x: x.min(),
    "argmin": lambda x: x.argmin(-1, keepdim=True),
    "any": lambda x: x.any(),
    "all along": lambda x: x.all(1),
    "count_nonzero": lambda x: torch.count_nonzero(x, dim=1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "cumsum": lambda x: x.cumsum(-1),
    "cumsum as int32": lambda x: x.cumsum(-1, dtype=torch.int32),
    "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(0),
    "median": lambda x: x.median(),
}  # fmt: skip

TRUTHS = {
    name: WHOLE[name]
    for name in ("sum", "sum over some", "prod", "prod along", "amax", "any", "all along", "count_nonzero", "cumsum", "cumprod", "cummax")
}


@pytest.mark.parametrize("name", FLOAT)
def test_of_floats(name: str) -> None:
    check_both(FLOAT[name], X)


@pytest.mark.parametrize("name", WHOLE)
def test_of_int64(name: str) -> None:
    check_both(WHOLE[name], N)


@pytest.mark.parametrize("name", TRUTHS)
def test_of_booleans(name: str) -> None:
    check_both(TRUTHS[name], B)


@pytest.mark.parametrize("name", ["sum", "mean over some", "var", "norm along", "max along", "cumsum", "logsumexp", "median", "cumprod"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_of_other_floats(name: str, dtype: torch.dtype) -> None:
    check(FLOAT[name], X.to(dtype), dynamic=True)


@pytest.mark.parametrize("name", ["sum", "prod along", "amax", "max along", "any", "cumsum", "cummax"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
def test_of_other_integers(name: str, dtype: torch.dtype) -> None:
    check(WHOLE[name], N.to(dtype), dynamic=True)


@pytest.mark.parametrize("name", ["sum over some", "mean", "all", "any along", "var along", "max along", "cumprod", "cummax", "median"])
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
    "norm": lambda x: x.norm(),
    "norm 3": lambda x: torch.linalg.vector_norm(x, 3, dim=0),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "cumprod across": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(0),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "amax of the other axis": lambda x: x.amax(1),
    "argmax of the other axis": lambda x: x.argmax(1),
}  # fmt: skip


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", OF_NOTHING)
def test_of_nothing(name: str, opset: int) -> None:
    check(OF_NOTHING[name], torch.zeros(0, 3), options={"opset_version": opset})
    assert_runs_on(OF_NOTHING[name], torch.zeros(2, 3), torch.zeros(0, 3), opset)
    assert_runs_on(OF_NOTHING[name], torch.zeros(2, 3), torch.ones(1, 3), opset)


def assert_runs_on(function: Callable[..., Any], example: Tensor, further: Tensor, opset: int = 18) -> None:
    """The export with a moving first axis is right for a size that `torch.export` itself would refuse."""

    class Module(torch.nn.Module):
        def forward(self, x: Tensor) -> Any:
            return function(x)

    program = to_onnx(Module(), (example,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), opset_version=opset)
    found, wanted = program(further), function(further)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for actual, expected in zip(found, wanted, strict=True):
        torch.testing.assert_close(torch.as_tensor(actual), expected, equal_nan=True)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize(
    "function",
    [
        torch.sum, torch.prod, torch.mean, torch.amax, torch.argmax, torch.max, torch.min, torch.var, torch.std_mean, torch.logsumexp,
        torch.cumsum, torch.cumprod, torch.cummax, torch.logcumsumexp, torch.median, torch.any, torch.all, torch.nanmean,
        torch.count_nonzero, lambda x, dim: torch.linalg.vector_norm(x, 3, dim), lambda x, dim: torch.linalg.vector_norm(x, INF, dim),
    ],
)  # fmt: skip
def test_of_a_number(function: Callable[..., Any], dim: int) -> None:
    check(function, torch.tensor(-2.5), dim)


@pytest.mark.parametrize("function", [torch.sum, torch.mean, torch.max, torch.argmin, torch.std, torch.norm, torch.median, torch.aminmax])
def test_of_all_of_a_number(function: Callable[..., Any]) -> None:
    check(function, torch.tensor(-2.5))
    check(function, torch.tensor([2.5]))


@pytest.mark.parametrize(
    "name",
    ["sum kept", "nansum", "nanmean", "amax", "amin", "max", "logsumexp", "norm", "vector norm inf", "cumsum", "nanmedian", "median",
     "quantile", "cummax", "cummin", "logcumsumexp", "aminmax", "mean", "all"],
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
    [lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.sum(0), lambda x: x.cumsum(1), lambda x: x.amax(1), lambda x: x.prod(1),
     lambda x: x.cumprod(0), lambda x: torch.einsum("ij->i", x)],
)  # fmt: skip
def test_int64_is_exact_and_wraps_around(function: Callable[..., Any]) -> None:
    check_both(function, HUGE)
    check(function, HUGE[None].expand(4, 2, 3).contiguous()[:, 0])


@pytest.mark.parametrize("function", [torch.max, torch.min, torch.cummax, torch.cummin])
def test_the_index_among_equal_elements_is_that_of_torch(function: Callable[..., Any]) -> None:
    check_both(function, torch.tensor([[1, 3, 3, 2, 3], [0, 0, 0, 0, 0], [2, 1, 1, 2, 1]]), 1)
    check_both(lambda x: x.argmax(1), torch.tensor([[1.0, 3, 3, 2, 3], [0, 0, 0, 0, 0], [2, 1, 1, 2, 1]]))


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (5, 2), (1, 4)])
def test_trace_of_any_matrix(sizes: tuple[int, int]) -> None:
    check_both(torch.trace, normal(*sizes))
    check(torch.trace, whole(*sizes))


@pytest.mark.parametrize("p", [2.0, 1.0, INF, 3.0])
def test_cdist_is_the_norm_of_all_differences(p: float) -> None:
    check_both(torch.cdist, normal(2, 3, 4), normal(2, 5, 4).roll(1), p=p)


def test_half_precision_is_added_in_single() -> None:
    large = torch.full((100, 3), 1000.0, dtype=torch.float16)
    check_both(lambda x: x.mean(0), large)
    check_both(lambda x: torch.linalg.vector_norm(x, 3, dim=0), large / 10)


@pytest.mark.parametrize("order", [1, -1, INF, -INF])
def test_matrix_norms(order: float) -> None:
    check(torch.linalg.matrix_norm, X, order, dim=(2, 0))
    check(torch.linalg.matrix_norm, X, order, keepdim=True)
    check(torch.linalg.norm, X[0], order)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(interpolation: str) -> None:
    some = torch.tensor([0.0, 0.45, 1.0])
    check(torch.quantile, X, some, -2, interpolation=interpolation, dynamic=True)
    check(torch.quantile, X, some, keepdim=True, interpolation=interpolation)
    check(torch.quantile, X, torch.tensor(0.3), 0, keepdim=True, interpolation=interpolation)


def nodes_of(function: Callable[..., Any], *args: Tensor) -> list[str]:
    class Module(torch.nn.Module):
        def forward(self, *tensors: Tensor) -> Any:
            return function(*tensors)

    return [node.op_type for node in to_onnx(Module(), args).model.graph]


@pytest.mark.parametrize(
    ("function", "nodes"),
    [
        (lambda x: x.sum(-1), ["ReduceSum"]),
        (lambda x: x.mean((0, 1)), ["ReduceMean"]),
        (lambda x: x.var(-1), ["ReduceMean", "Sub", "ReduceSumSquare", "Div"]),
        (lambda x: x.norm(dim=-1), ["ReduceL2"]),
        (lambda x: x.long().max(-1).indices, ["Cast", "ArgMax"]),
        (lambda x: x.max(-1).indices, ["ReduceL1", "IsNaN", "ArgMax", "IsNaN", "Cast", "ArgMax", "Where"]),
        (lambda x: x.cumsum(0), ["CumSum"]),
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


MASKED = torch.tensor([[-INF, -1000, -2000], [-INF] * 3, [INF, 1, 2], [-INF, -INF, NAN]])


@pytest.mark.parametrize("function", [torch.logsumexp, torch.logcumsumexp])
def test_logarithms_of_sums_are_right_after_minus_infinity(function: Any) -> None:
    check_both(lambda x: function(x, -1), MASKED, options={"fallback": False})


REDUCED = {
    "argmax": lambda x: (x.argmax(-1), x.argmax(-1, True), x.max(-1)),
    "safe softmax": lambda x: torch.ops.aten._safe_softmax.default(x, -1),
    "rms_norm": lambda x: torch.nn.functional.rms_norm(x, x.shape[1:]),
    "adaptive_avg_pool": lambda x: torch.nn.functional.adaptive_avg_pool2d(x[:, None, None], 1),
    "logsumexp": lambda x: x.logsumexp(-1),
}


@pytest.mark.parametrize("name", REDUCED)
def test_an_empty_batch_loses_the_last_axis_too(name: str) -> None:
    check(REDUCED[name], torch.zeros(0, 3), options={"fallback": False})
