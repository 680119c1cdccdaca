"""Pooling by windows of one size: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import OWN, normal
from modules import Of
from operators import check, check_both

from exportlab import to_onnx, verify
from fx2onnx.errors import FrozenDimension

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


WHOLE = {
    "the maximum of all steps": lambda x: F.max_pool1d(x[:, :, :, 0], x.size(2)).squeeze(2),
    "the mean of a moving image": lambda x: F.avg_pool2d(x.clamp(min=1e-6).pow(3), (x.size(-2), x.size(-1))).pow(1 / 3),
    "the maximum of an image": lambda x: F.max_pool2d(x, kernel_size=x.size()[2:]),
    "the mean along one axis": lambda x: F.avg_pool2d(x, (x.shape[2], 1)) + F.avg_pool2d(x, (x.shape[2], 3), stride=(x.shape[2], 2)).sum(),
    "the maximum along one axis": lambda x: F.max_pool2d(x, (x.shape[2], 3), stride=(1, 2)),
    "of one image": lambda x: F.avg_pool2d(x[0], (x.shape[2], 8)) + F.max_pool2d(x[0], (x.shape[2], 8)),
    "of a volume": lambda x: F.avg_pool3d(x[None], (3, x.shape[2], 8)) + F.max_pool3d(x[None], (3, x.shape[2], 8)),
    "of float64": lambda x: F.avg_pool2d(x.double(), (x.shape[2], 8)) + F.max_pool1d(x[0].double().transpose(1, 2), x.shape[2]).sum(),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_kernel_of_a_whole_axis_that_moves(name: str) -> None:
    model = Of(WHOLE[name])
    program = to_onnx(model, (image(),), dynamic_shapes=({2: "height"},))
    report = verify(program, model, [(image(2, 3, height, 8),) for height in (7, 1, 2, 12, 33)])
    assert (report.outcome, program.report.limits) == ("ok", ()), report


def test_a_kernel_of_half_an_axis_is_refused_with_its_line() -> None:
    with pytest.raises(FrozenDimension, match=r"only \(height // 2\) == 3 is exported: .* test_pool\.py|.*test_pool\.py:\d+ in <lambda>"):
        to_onnx(Of(lambda x: F.max_pool2d(x, (x.shape[2] // 2, 1))), (image(),), dynamic_shapes=({2: "height"},))
