"""Images made smaller with antialiasing: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from operators import Call, check, check_both

from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedOps


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing_is_exact_for_known_sizes(mode: str) -> None:
    check(lambda x: F.interpolate(x, size=(3, 13), mode=mode, antialias=True), normal(2, 3, 7, 8), options=OWN)
    check(lambda x: F.interpolate(x, scale_factor=0.6, mode=mode, antialias=True), normal(2, 3, 7, 8), options=OWN)


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing_of_an_image_that_moves(mode: str, corners: bool) -> None:
    options = {"mode": mode, "antialias": True, "align_corners": corners}
    check_both(lambda x: F.interpolate(x, size=(3, 13), **options), normal(2, 3, 7, 8), options=OWN)
    check_both(lambda x: F.interpolate(x, size=(1, 1), **options), normal(2, 3, 7, 8), options=OWN)
    check_both(lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] // 2), **options), normal(2, 3, 7, 8), options=OWN)
    check_both(lambda x: F.interpolate(x, scale_factor=(1.7, 0.9), **options), normal(2, 3, 7, 8), options=OWN)


@pytest.mark.parametrize("operator", [torch.ops.aten._upsample_bilinear2d_aa, torch.ops.aten._upsample_bicubic2d_aa])
def test_antialiasing_steps_by_the_scales_that_it_is_given(operator: Any) -> None:
    def stepped(x: torch.Tensor) -> torch.Tensor:
        return operator(x, [3, 3], False, scales_h=1.7, scales_w=0.9)

    check(stepped, normal(2, 3, 7, 8))
    with pytest.raises(UnsupportedOps, match="antialiasing of integer images"):
        to_onnx(Call(stepped, (normal(2, 3, 7, 8),), {}), (normal(2, 3, 7, 8).to(torch.uint8),))
    with pytest.raises(UnsupportedOps, match="scales may not lead to the sizes"):
        to_onnx(
            Call(stepped, (normal(2, 3, 7, 8),), {}), (normal(2, 3, 7, 8),), dynamic_shapes={"tensors": ({2: torch.export.Dim.DYNAMIC},)}
        )
