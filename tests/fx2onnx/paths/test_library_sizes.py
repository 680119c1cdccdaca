"""Tests of two sizes in the code of an installed library are right on both sides or refused, at whatever threshold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from fx2onnx import to_onnx
from fx2onnx.errors import ToOnnxError

LIBRARY = Path(torch.__file__).parents[1] / "some_library/sizes.py"
LARGEST = 70_000  # elements of an argument
FORMS = ("x.shape[0] * y.shape[0] > t", "x.shape[0] + y.shape[0] > t", "x.shape[0] - y.shape[0] > t", "x.shape[0] * 3 > y.shape[0] + t")


def in_library(condition: str) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Return a function whose code is in a file of an installed library."""
    code: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {}
    exec(compile(f"def scale(x, y, t): return x * 2 if {condition} else x * 3", LIBRARY, "exec"), code)
    return code["scale"]


class Scaled(nn.Module):
    """A model that a library scales by a test of two sizes."""

    def __init__(self, condition: str, threshold: int) -> None:
        super().__init__()
        self.scale, self.threshold = in_library(condition), threshold

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.scale(x, y, self.threshold) + y.sum() * 0


@pytest.mark.parametrize("threshold", [3, 250, 511, 513, 5000, 65_535, 65_537, 2**31])
@pytest.mark.parametrize("condition", FORMS)
def test_thresholds_of_two_axes_are_not_frozen(condition: str, threshold: int) -> None:
    model = Scaled(condition, threshold)
    try:
        program = to_onnx(model, (torch.randn(4), torch.randn(3)), dynamic_shapes=({0: "a"}, {0: "b"}))
    except ToOnnxError:
        assert threshold > 500
        return
    for a in {1, 2, threshold // 3, threshold // 2, threshold - 1, threshold, threshold + 2, threshold + 9}:
        for b in {1, 7, threshold // a if a else 1, threshold // max(a, 1) + 1, abs(threshold - a), abs(threshold - a) + 1}:
            if 1 <= a <= LARGEST and 1 <= b <= LARGEST:
                x, y = torch.randn(a), torch.randn(b)
                assert torch.equal(program(x, y)[0], model(x, y)), (a, b)
