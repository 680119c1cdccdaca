"""Softmax and its logarithm: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import OWN
from operators import check, check_both

aten = torch.ops.aten
X = torch.randn(2, 3, 4)

ROWS = {
    "softmax of one number": (F.softmax, torch.tensor(2.0), 0),
    "softmax of inf": (F.softmax, torch.tensor(torch.inf), -1),
    "softmax in float64": (lambda x: F.softmax(x, -1, dtype=torch.float64), X),
    "softmax of integers": (lambda x: F.softmax(x, 0, dtype=torch.float32), torch.arange(6).reshape(2, 3)),
    "log softmax": (F.log_softmax, X, 1),
    "log softmax of large": (F.log_softmax, 1e4 * X, -1),
    "softmin": (F.softmin, X, -2),
    "softmax float16": (F.softmax, X.half(), -1),
    "softmax empty": (F.softmax, X[:0], -1),
    "softmax of no classes": (F.softmax, X[:, :0], 1),
    "_softmax": (aten._softmax.default, X, -1, False),
    "_log_softmax": (aten._log_softmax.default, X, -1, False),
    "safe softmax": (aten._safe_softmax.default, torch.tensor([[-torch.inf] * 3, [1, -torch.inf, 2]]), -1),
}


@pytest.mark.parametrize("name", ROWS)
def test_they_give_what_eager_gives(name: str) -> None:
    check_both(*ROWS[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 21, 23, 26])
@pytest.mark.parametrize("name", ["log softmax"])
def test_they_are_right_at_every_opset(name: str, opset: int) -> None:
    check(*ROWS[name], dynamic=True, options=OWN | {"opset_version": opset})


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_rows_of_infinities_and_nan_give_what_eager_gives(function: Any) -> None:
    inf, nan = torch.inf, torch.nan
    check_both(function, torch.tensor([[-inf] * 3, [1, -inf, 2], [inf, 1, 2], [nan, 1, 2]]), -1, options=OWN)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data(), st.sampled_from([torch.float32, torch.float64, torch.float16]))
def test_softmax_of_any_sizes_axis_and_dtype(sizes: list[int], data: st.DataObject, dtype: torch.dtype) -> None:
    dim = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    check(data.draw(st.sampled_from([F.softmax, F.log_softmax])), torch.randn(sizes).to(dtype), dim, dynamic=True, options=OWN)


def test_rows_of_an_empty_batch_keep_their_sizes() -> None:
    check(lambda x: aten._safe_softmax.default(x, -1), torch.zeros(0, 3), options=OWN)
