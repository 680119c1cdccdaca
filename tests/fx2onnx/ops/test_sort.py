"""Sorting, the largest ones, unique ones: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
from inputs import INF, NAN, OWN, ints, normal
from operators import check, check_both

X, Z = normal(4, 6), torch.tensor(2.5)
ODD = torch.tensor([[1, NAN, 3, INF, NAN, -INF, 2, INF]])
TIES = ints(3, 1, 3, 2, 1, 1)

SORTED = {
    "topk": (lambda x: (x.topk(2)[0], x.topk(3, 0)[0], x.topk(2, -1, False)[0], x.topk(0), x.topk(x.shape[0] - 2)[0]), X),
    "topk of integers": (lambda x: (x.topk(2)[0], x.int().topk(2)[0], x.to(torch.int8).topk(2)[0], x.double().topk(1)[0]), TIES),
    "no axes": (lambda x: (x.topk(1), x.sort(), x.argsort(), x.sort(0), x.kthvalue(1)), Z),
    "sort": (
        lambda x: (x.sort(), x.sort(0, True), x.sort(-2), x.argsort(), x.argsort(-1, True), x.msort(), x.argsort(stable=True, dim=0)),
        X,
    ),
    "equal ones stay in order": (lambda x: (x.sort(stable=True), x.sort(stable=True, descending=True), (x > 1).sort(stable=True)), TIES),
    "NaN is the largest": (
        lambda x: tuple(t.sort(stable=True, descending=d) for t in (x, x.half(), x.double()) for d in (False, True)),
        ODD,
    ),
    "sort nothing": (lambda x: (x.sort(), x.unique_consecutive(return_counts=True), x.flatten().unique()), torch.zeros(3, 0)),
    "mode": (lambda x: (x.mode()[0], x.mode(0)[0], x.mode(-1, True)[0], x.round().mode(0)[0], x.round().int().mode(0)[0]), X),
    "kthvalue": (lambda x: (x.kthvalue(2)[0], x.kthvalue(1, 0)[0], x.kthvalue(3, -1, True)[0]), X),
    "unique": (lambda x: x.unique(return_inverse=True, return_counts=True), TIES.reshape(3, 2)),
    "unique floats": (lambda x: x.unique(return_inverse=True, return_counts=True), torch.tensor([1.0, NAN, 1, -3, NAN, INF])),
    "unique rows": (lambda x: x.unique(dim=0, return_inverse=True, return_counts=True), ints([1, 2], [0, 5], [1, 2])),
    "unique neighbours": (lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), TIES),
    "unique neighbouring rows": (
        lambda x: x.unique_consecutive(return_inverse=True, return_counts=True, dim=0),
        ints([1, 2], [1, 2], [0, 5]),
    ),
}


@pytest.mark.parametrize("name", SORTED)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*SORTED[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ["sort", "unique floats"])
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*SORTED[name], dynamic=True, options={"opset_version": opset, **OWN})
