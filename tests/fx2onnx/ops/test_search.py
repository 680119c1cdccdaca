"""Searching and counting: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
from inputs import INF, NAN, OWN, ints, normal
from operators import check, check_both

X, W = normal(4, 6), normal(5)
ODD = torch.tensor([[1, NAN, 3, INF, NAN, -INF, 2, INF]])
TIES = ints(3, 1, 3, 2, 1, 1)

FOUND = {
    "bucketize": (
        lambda x, b: tuple(torch.bucketize(x, b.sort()[0], right=r) for r in (False, True)),
        ODD,
        torch.tensor([0.0, 1, 2, 2, 3]),
    ),
    "bucketize a number": (lambda b: (torch.bucketize(2, b.sort()[0]), torch.bucketize(2, b.sort()[0], right=True)), ints(1, 2, 3)),
    "no boundaries": (lambda x, b: (torch.bucketize(x, b), torch.isin(x, b)), X, torch.zeros(0)),
    "searchsorted": (lambda s, v: (torch.searchsorted(s.sort()[0], v, side="right"), torch.searchsorted(s[0].msort(), v)), X, normal(4, 3)),
    "searchsorted by a sorter": (lambda s, v: torch.searchsorted(s, v, sorter=s.argsort()), W, normal(4, 3)),
    "isin": (lambda x, t: (torch.isin(x, t), torch.isin(x, t, invert=True), torch.isin(x, 2), torch.isin(2, x)), TIES, ints([1, 2])),
    "histc": (lambda x: (x.histc(4, 0, 3), x.histc(4), x.histc(5, -1, 1)), X),
    "histc at the borders": (lambda x: x.histc(4, min=0, max=3), torch.tensor([0.0, 1, 3, 3, 5, NAN, -1])),
    "bincount": (lambda x, w: (x.bincount(), x.bincount(minlength=10), x.bincount(w, minlength=2)), TIES, normal(6)),
    "bincount of nothing": (lambda x: (x.bincount(), x.bincount(minlength=3)), ints()),
}


@pytest.mark.parametrize("name", FOUND)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*FOUND[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ["histc"])
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*FOUND[name], dynamic=True, options={"opset_version": opset, **OWN})
