"""Tensors made of sizes and numbers: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from inputs import INF, NAN, OWN, count, normal
from operators import check, check_both, nodes_of

X, Z = normal(4, 6), torch.tensor(2.5)
MASK = normal(4, 6) > 0

CREATED = {
    "zeros": (lambda a: (torch.zeros(3, a.shape[0]), torch.zeros_like(a), a.new_zeros(3), torch.zeros(1000, 3, dtype=torch.int16)), X),
    "ones": (lambda a: (torch.ones(a.shape, dtype=torch.bool), torch.ones_like(a, dtype=torch.int64), a.new_ones(a.shape[0], 2)), X),
    "full": (
        lambda a: (torch.full((2, 3), 7), torch.full((a.shape[0],), 1.5), torch.full((3, a.shape[0]), a.shape[1]), torch.full((), 3)),
        X,
    ),
    "full_like": (lambda a: (torch.full_like(a, 2.5), a.new_full((2, a.shape[1]), -1.5), torch.full_like(a, NAN, dtype=torch.float16)), X),
    "like booleans": (lambda a: (torch.zeros_like(a), torch.ones_like(a), torch.full_like(a, 3)), MASK),
    "like nothing": (lambda a: (torch.zeros_like(a), torch.ones_like(a)), torch.zeros(0, 3)),
    "empty": (lambda a: (torch.empty_like(a).zero_(), torch.empty(a.shape[0]).fill_(2), torch.cat([a, torch.empty(0, 6)])), X),
    "arange": (lambda a: (torch.arange(5), torch.arange(a.shape[0]), torch.arange(1, a.shape[0]), torch.arange(a.shape[1], 0, -1)), X),
    "arange in steps": (lambda a: (torch.arange(0, a.shape[1], 2), torch.arange(-a.shape[0] + 1, a.shape[0]), torch.arange(3, 3)), X),
    "arange of fractions": (lambda a: (torch.arange(0, 1, 0.3), torch.arange(0, a.shape[0], 0.3), torch.arange(0.5, a.shape[0])), X),
    "arange in a dtype": (lambda a: tuple(torch.arange(a.shape[0], dtype=t) for t in (torch.float16, torch.int32, torch.float64)), X),
    "long arange": (lambda a: (torch.arange(0, 500), torch.arange(0, 500, 0.7)), X),
    "eye": (lambda a: (torch.eye(3, 4), torch.eye(a.shape[0], a.shape[1]), torch.eye(a.shape[0], dtype=torch.bool), torch.eye(300, 2)), X),
    "linspace of tensors": (lambda a, b: (torch.linspace(a, b, 5), torch.linspace(0.0, b, 7), torch.linspace(a, 3.0, 7)), Z, Z * 3),
    "linspace to a size": (lambda a: (torch.linspace(0, a.shape[0], 5), torch.linspace(3, -7, 500), torch.linspace(0, 1, 1)), X),
    "one_hot": (lambda a: F.one_hot(a, 5), count(2, 2)),
    "one_hot of no axes": (lambda a: F.one_hot(a, 5), torch.tensor(3)),
    "one_hot of nothing": (lambda a: F.one_hot(a, 5), count(0)),
    "tensors of numbers": (lambda a: (a + torch.tensor([1, 2, 3, 4, 5, 6]), a * torch.tensor(a.shape[0]), torch.scalar_tensor(3.5)), X),
    "causal mask": (lambda a: torch.triu(torch.full((a.shape[0], a.shape[0]), -INF), 1), X),
}
CREATED_STATIC = {
    "logspace": (lambda a: (torch.logspace(0, 1, 5), torch.linspace(0, 1, a.shape[0]), torch.logspace(0, 1, 300)), X),
    "indices of triangles": (lambda a: (torch.tril_indices(3, 4, -1), torch.triu_indices(a.shape[0], 20, 1), torch.tril_indices(2, 2)), X),
}


@pytest.mark.parametrize("name", CREATED)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*CREATED[name], options=OWN)


@pytest.mark.parametrize("name", CREATED_STATIC)
def test_it_is_what_torch_computes_where_the_sizes_are_fixed(name: str) -> None:
    check(*CREATED_STATIC[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ["arange", "eye", "one_hot"])
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*CREATED[name], dynamic=True, options={"opset_version": opset, **OWN})


@pytest.mark.parametrize(
    ("function", "expected"),
    [(lambda x: x + torch.arange(6.0), ["Add"])],
)
def test_nothing_is_emitted_that_would_have_to_be_removed(function: Any, expected: list[str]) -> None:
    assert nodes_of(function, X, dynamic=True, **OWN) == expected
