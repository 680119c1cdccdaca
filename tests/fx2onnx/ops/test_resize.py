"""Images at other sizes: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from operators import check, check_both

OPSETS = (18, 26)


def image(*sizes: int) -> torch.Tensor:
    return normal(*(sizes or (2, 3, 7, 8)))


def by_weights(function: Any, *weights: Any, **options: Any) -> Any:
    """The function of its first argument alone, so that the sizes of the weights stay."""
    return lambda x: function(x, *weights, **options)


RESIZED = {
    "nearest": ({"scale_factor": 2}, image()),
    "nearest by 0.7": ({"scale_factor": 0.7}, image()),
    "nearest exact by 1.3": ({"scale_factor": 1.3, "mode": "nearest-exact"}, image()),
    "nearest to a size": ({"size": (13, 3)}, image()),
    "nearest integers": ({"scale_factor": 2}, torch.arange(40, dtype=torch.uint8).reshape(1, 2, 4, 5)),
    "nearest float64": ({"size": (5, 9)}, image().double()),
    "nearest 3d": ({"scale_factor": 2}, image(1, 2, 4, 5, 3)),
    "linear": ({"scale_factor": 3.0, "mode": "linear"}, image(2, 3, 5)),
    "bilinear": ({"scale_factor": 2.5, "mode": "bilinear"}, image()),
    "bilinear to one": ({"size": (1, 3), "mode": "bilinear"}, image()),
    "bilinear corners": ({"size": (1, 9), "mode": "bilinear", "align_corners": True}, image()),
    "bicubic": ({"size": (5, 11), "mode": "bicubic"}, image()),
    "bicubic corners": ({"size": (5, 11), "mode": "bicubic", "align_corners": True}, image()),
    "trilinear": ({"size": (3, 7, 5), "mode": "trilinear"}, image(2, 3, 4, 5, 3)),
}


@pytest.mark.parametrize("name", RESIZED)
def test_interpolation_gives_what_eager_gives(name: str) -> None:
    options, x = RESIZED[name]
    check_both(lambda x: F.interpolate(x, **options), x, options=OWN)


def test_interpolation_to_a_size_that_moves() -> None:
    check_both(lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] + 1), mode="bilinear"), image(), options=OWN)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize(("size", "wanted"), [(14, 2), (14, 46), (20, 12), (16, 48)])
def test_the_nearest_is_that_of_torch_at_sizes_where_onnx_runtime_rounds_otherwise(size: int, wanted: int, mode: str) -> None:
    x = torch.arange(2.0 * size).reshape(1, 2, size)
    check(lambda x: F.interpolate(x, size=wanted, mode=mode), x, options=OWN)
    check_both(lambda x, y: F.interpolate(x, size=y.shape[2], mode=mode), x, normal(1, 1, wanted), options=OWN)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_samples_give_what_eager_gives(mode: str, opset: int) -> None:
    for padding, corners in (("zeros", True), ("border", False), ("reflection", False)):
        sample = by_weights(F.grid_sample, 1.3 * normal(2, 6, 7, 2).tanh(), mode=mode, padding_mode=padding, align_corners=corners)
        check(sample, image(2, 3, 4, 5), options=OWN | {"opset_version": opset})


@pytest.mark.parametrize("corners", [True, False])
def test_affine_grids_give_what_eager_gives(corners: bool) -> None:
    check_both(lambda t, x: F.affine_grid(t, list(x.shape), align_corners=corners), normal(2, 2, 3), image(2, 3, 4, 5), options=OWN)
    check_both(lambda t: F.affine_grid(t, [2, 3, 1, 5, 3], align_corners=corners), normal(2, 3, 4), options=OWN)
