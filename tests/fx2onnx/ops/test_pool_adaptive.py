"""Pooling to a size: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from operators import check, check_both


def image(*sizes: int) -> torch.Tensor:
    return normal(*(sizes or (2, 3, 7, 8)))


POOLS = {
    "adaptive to one": (F.adaptive_avg_pool2d, image(), 1),
    "adaptive divides": (F.adaptive_avg_pool2d, image(2, 3, 6, 4), (3, 2)),
    "adaptive": (F.adaptive_avg_pool2d, image(), (3, 5)),
    "adaptive longer": (F.adaptive_avg_pool1d, image(2, 3, 3), 7),
    "adaptive 3d": (F.adaptive_avg_pool3d, image(2, 3, 4, 5, 6), (3, 2, 4)),
    "adaptive float64": (F.adaptive_avg_pool2d, image().double(), 3),
    "adaptive NaN stays in its window": (F.adaptive_avg_pool1d, torch.tensor([[1, torch.nan, 2, 3, torch.inf, 3, 4]]), 3),
    "adaptive max": (F.adaptive_max_pool2d, image(), (3, 5), True),
    "adaptive max divides": (F.adaptive_max_pool1d, image(2, 3, 6), 3, True),
    "adaptive max 3d": (F.adaptive_max_pool3d, image(3, 4, 5, 6), (2, 5, 3), True),
    "area of an image": (lambda x: F.interpolate(x, size=(3, 5), mode="area"), image()),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_give_what_eager_gives(name: str) -> None:
    check_both(*POOLS[name], options=OWN)


def test_an_empty_batch_keeps_its_sizes() -> None:
    check(lambda x: F.adaptive_avg_pool2d(x[:, None, None], 1), torch.zeros(0, 3), options=OWN)
