"""The incomplete gamma functions, against torch's in float64, over magnitudes and at the ends of their domain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from inputs import INF, NAN, OWN, normal
from operators import Call, check_both

from fx2onnx import to_onnx

VALUES = [0, 1e-6, 1e-3, 0.1, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 21, 50, 100, 199, 201, 250, 1000, 1e4, 1e5, 1e6, INF, NAN, -1, -INF]
BOTH = [torch.igamma, torch.igammac]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("function", BOTH, ids=["lower", "upper"])
def test_of_all_magnitudes(function: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    values = torch.tensor(VALUES, dtype=dtype)
    a, x = (t.flatten().clone() for t in torch.meshgrid(values, values, indexing="ij"))
    made = torch.as_tensor(to_onnx(Call(function, (a, x), {}), (a, x))(a, x)[0])
    digits = 1e-3 if dtype == torch.float16 else 1e-6
    torch.testing.assert_close(made.double(), function(a.double(), x.double()), rtol=1e-4, atol=digits, equal_nan=True)
    assert made.dtype == dtype


@pytest.mark.parametrize("function", [*BOTH, torch.special.gammainc, torch.special.gammaincc])
def test_at_moving_sizes(function: Callable[..., torch.Tensor]) -> None:
    check_both(function, normal(3, 1).abs() * 5, normal(4).abs() * 5, options=OWN)
    check_both(function, torch.zeros(0), torch.zeros(0), options=OWN)
