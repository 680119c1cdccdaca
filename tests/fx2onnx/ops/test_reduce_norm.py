"""Norms and distances: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import INF, NAN, flags, normal, whole
from operators import check, check_both, check_further, nodes_of
from torch.export import Dim

X, N, B = normal(2, 3, 4), whole(2, 3, 4), flags(2, 3, 4)
WITH_NAN = torch.tensor([[1, NAN, 3, 5], [NAN, NAN, NAN, NAN], [-INF, INF, 0, -1], [INF, NAN, 1, 2], [4, 2, 3, 1]])

FLOAT = {
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
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT)
def test_of_floats(name: str) -> None:
    check_both(FLOAT[name], X)


@pytest.mark.parametrize("name", ["norm along"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_of_other_floats(name: str, dtype: torch.dtype) -> None:
    check(FLOAT[name], X.to(dtype), dynamic=True)


OF_NOTHING = {
    "norm": lambda x: x.norm(),
    "norm 3": lambda x: torch.linalg.vector_norm(x, 3, dim=0),
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
        lambda x, dim: torch.linalg.vector_norm(x, 3, dim),
        lambda x, dim: torch.linalg.vector_norm(x, INF, dim),
    ],
)  # fmt: skip
def test_of_a_number(function: Callable[..., Any], dim: int) -> None:
    check(function, torch.tensor(-2.5), dim)


@pytest.mark.parametrize("function", [torch.norm])
def test_of_all_of_a_number(function: Callable[..., Any]) -> None:
    check(function, torch.tensor(-2.5))
    check(function, torch.tensor([2.5]))


@pytest.mark.parametrize(
    "name",
    ["norm", "vector norm inf"],
)  # fmt: skip
def test_nan_and_inf_as_in_torch(name: str) -> None:
    check_both(FLOAT[name], WITH_NAN)


@pytest.mark.parametrize("p", [2.0, 1.0, INF, 3.0])
def test_cdist_is_the_norm_of_all_differences(p: float) -> None:
    check_both(torch.cdist, normal(2, 3, 4), normal(2, 5, 4).roll(1), p=p)


@pytest.mark.parametrize("order", [1, -1, INF, -INF])
def test_matrix_norms(order: float) -> None:
    check(torch.linalg.matrix_norm, X, order, dim=(2, 0))
    check(torch.linalg.matrix_norm, X, order, keepdim=True)
    check(torch.linalg.norm, X[0], order)


@pytest.mark.parametrize(
    ("function", "nodes"),
    [(lambda x: x.norm(dim=-1), ["ReduceL2"])],
)  # fmt: skip
def test_as_few_nodes_as_it_takes(function: Callable[..., Any], nodes: list[str]) -> None:
    assert nodes_of(function, X) == nodes
