"""Fractions, exponents and next floats: exact for every float of each type, subnormal ones too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import INF, NAN, OWN, normal
from operators import Call, check_both

from fx2onnx import to_onnx

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def floats(dtype: torch.dtype) -> torch.Tensor:
    """The ends of a type, all powers of two that it has, and others between them."""
    ends = torch.finfo(dtype)
    odd = torch.tensor(
        [0, -0.0, INF, -INF, NAN, ends.max, ends.min, ends.tiny, ends.tiny * ends.eps, 1 - ends.eps / 2], dtype=torch.float64
    )
    powers = 2.0 ** torch.arange(-1074, 1024, 7, dtype=torch.float64)
    return torch.cat([odd, -odd, powers, -powers, powers * (1 + normal(len(powers)).double().abs() % 1)]).to(dtype)


def exactly(function: Callable[..., Any], *given: torch.Tensor) -> None:
    """Compare all results bit by bit, but for the sign of 0, by one export."""
    wanted = function(*given)
    wanted = tuple(wanted) if isinstance(wanted, (tuple, list)) else (wanted,)
    for actual, expected in zip(to_onnx(Call(function, given, {}), given)(*given), wanted, strict=True):
        torch.testing.assert_close(torch.as_tensor(actual), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_fractions_and_exponents_are_exact(dtype: torch.dtype) -> None:
    exactly(torch.frexp, floats(dtype))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_next_float_is_exact_in_every_direction(dtype: torch.dtype) -> None:
    x = floats(dtype)
    others = [x.flip(0), x, torch.zeros_like(x), torch.full_like(x, INF), torch.full_like(x, -INF), torch.full_like(x, NAN)]
    exactly(torch.nextafter, torch.cat([x] * len(others)), torch.cat(others))


def test_parts_at_moving_sizes() -> None:
    check_both(lambda x, y: (*torch.frexp(x), torch.nextafter(x, y)), normal(3, 4), normal(4), options=OWN)
    check_both(torch.frexp, torch.zeros(0, 2), options=OWN)
