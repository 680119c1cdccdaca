"""Pooling by windows of one size: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import OWN, normal
from operators import check, check_both

OPSETS = (18, 26)


def image(*sizes: int) -> torch.Tensor:
    return normal(*(sizes or (2, 3, 7, 8)))


POOLS = {
    "max 1d": (F.max_pool1d, image(2, 3, 7), 3, 2, 1, 1, False, True),
    "max 2d dilated": (F.max_pool2d, image(2, 3, 9, 8), (2, 3), 2, 1, (2, 1)),
    "max 2d ties": (F.max_pool2d, image().sign(), 2, None, 0, 1, False, True),
    "max 3d": (F.max_pool3d, image(2, 3, 4, 5, 6), 2, 1, 1, 1, True, True),
    "max of one image": (F.max_pool2d, image(3, 7, 8), 3),
    "max of −inf": (F.max_pool2d, torch.full((1, 2, 4, 4), -torch.inf), 2),
    "max float64": (F.max_pool2d, image().double(), 2),
    "average 2d inside": (F.avg_pool2d, image(), 3, 2, 1, False, False),
    "average 2d ceil": (F.avg_pool2d, image(), 3, 2, 1, True),
    "average 1d last window left out": (F.avg_pool1d, image(2, 3, 6), 2, 3, 1, True),
    "average 3d": (F.avg_pool3d, image(2, 3, 5, 6, 7), (2, 3, 2), 2, (1, 1, 0), True, False),
    "average divisor": (F.avg_pool2d, image(), 3, 2, 1, True, True, 4),
    "average of one image": (F.avg_pool1d, image(3, 7), 3),
    "unpool": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), image(2, 3, 6, 6)),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_give_what_eager_gives(name: str) -> None:
    check_both(*POOLS[name], options=OWN)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(1, 4), st.booleans(), st.booleans(), st.integers(0, 8), st.sampled_from(OPSETS))
def test_ceil_mode_counts_windows_as_torch_does(kernel: int, stride: int, padded: bool, include: bool, more: int, opset: int) -> None:
    padding = kernel // 2 if padded else 0

    def pools(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return F.max_pool1d(x, kernel, stride, padding, 1, True), 1 + F.avg_pool1d(x, kernel, stride, padding, True, include)

    check(pools, normal(1, 1, kernel + more), options=OWN | {"opset_version": opset})
