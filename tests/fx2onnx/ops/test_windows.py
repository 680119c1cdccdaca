"""Convolutions and pooling in float64 and of integers, for which ONNX Runtime has no kernels: every option, and moving sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import OWN, normal, whole
from operators import check_both, check_further
from torch.export import Dim
from torch.nn import functional as F

TYPES = [torch.float64, torch.int64]
CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "conv1d": (F.conv1d, (2, 4, 9), (6, 4, 3), (6,), {"stride": 2, "padding": 1}),
    "conv2d in groups": (
        F.conv2d, (2, 4, 9, 7), (6, 2, 3, 2), (6,), {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2},
    ),
    "conv3d": (F.conv3d, (1, 2, 5, 6, 4), (3, 2, 2, 3, 1), (3,), {"padding": 1}),
    "conv2d to the same size": (F.conv2d, (2, 3, 6, 5), (4, 3, 4, 2), (4,), {"padding": "same"}),
    "conv2d without a batch": (F.conv2d, (3, 6, 5), (4, 3, 2, 2), (4,), {"padding": "valid"}),
    "transposed 1d": (F.conv_transpose1d, (2, 4, 5), (4, 3, 3), (3,), {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed 2d in groups": (
        F.conv_transpose2d, (2, 4, 5, 3), (4, 3, 3, 2), (6,), {"stride": (3, 2), "dilation": (1, 2), "padding": (4, 0), "groups": 2},
    ),
    "transposed 3d": (F.conv_transpose3d, (1, 2, 3, 2, 4), (2, 3, 2, 2, 1), (3,), {"stride": 2}),
}  # fmt: skip
POOLS: dict[str, Callable[[torch.Tensor], Any]] = {
    "avg_pool1d": lambda x: F.avg_pool1d(x[0], 3, 2, 1),
    "avg_pool2d": lambda x: (F.avg_pool2d(x, 2), F.avg_pool2d(x, (3, 2), (2, 3), (1, 1), count_include_pad=False)),
    "avg_pool2d with all of the end": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avg_pool2d by a divisor": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=5),
    "max_pool2d": lambda x: (*F.max_pool2d(x, 2, return_indices=True), F.max_pool2d(x, (3, 2), (2, 3), 1, (1, 2))),
    "max_pool2d with all of the end": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True),
}


def filled(sizes: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Random numbers of a type; of int64 such that their products wrap."""
    if dtype.is_floating_point:
        return normal(*sizes).to(dtype)
    return whole(*sizes, low=-(2**40), high=2**40)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str, dtype: torch.dtype) -> None:
    function, *sizes, options = CONVOLUTIONS[name]
    check_both(lambda *given: function(*given, **options), *(filled(size, dtype) for size in sizes), options=OWN)
    check_both(lambda *given: function(*given, **options), *(filled(size, dtype) for size in sizes[:2]), options=OWN)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str, dtype: torch.dtype) -> None:
    check_both(POOLS[name], filled((2, 3, 8, 7), dtype), options=OWN)


def test_a_filter_whose_size_moves_keeps_the_size_of_the_image() -> None:
    example = normal(2, 3, 6, 5), normal(4, 3, 3, 2)
    axes = {0: Dim("batch"), 2: Dim("rows"), 3: Dim("columns")}, {2: Dim("height"), 3: Dim("width")}
    for dtype in (torch.float32, torch.float64):
        given, further = (tuple(t.to(dtype) for t in tensors) for tensors in (example, (normal(1, 3, 9, 8), normal(4, 3, 4, 5))))
        check_further(lambda x, w: F.conv2d(x, w, padding="same"), given, further, axes, rtol=1e-4, atol=1e-4)


def test_a_batch_of_no_images() -> None:
    given, none = (tuple(t.double() for t in (normal(n, 3, 6, 5), normal(4, 3, 3, 2))) for n in (2, 0))
    for function in (F.conv2d, lambda x, w: F.conv_transpose2d(x, w[:3]), lambda x, w: F.avg_pool2d(x + w.sum(), 2)):
        check_further(function, given, none, ({0: Dim("batch")}, {}))
