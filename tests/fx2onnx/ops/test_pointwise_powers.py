"""Powers of integers: they wrap as torch's do, whatever the exponent."""

from __future__ import annotations

import pytest
import torch
from inputs import EDGES
from operators import check, check_both

BASES = torch.tensor([-(1 << 62), -20, -3, -2, -1, 0, 1, 2, 3, 7, 1 << 40])
EXPONENTS = torch.tensor([-(1 << 62), -3, -2, -1, 0, 1, 2, 5, 62, 63, 64, 65, 1000, (1 << 62) + 1])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_integers_to_integers_wrap(dtype: torch.dtype) -> None:
    base, exponent = (t.contiguous().to(dtype) for t in torch.meshgrid(BASES, EXPONENTS, indexing="ij"))
    check_both(lambda a, b: (a**b, 3**b, 2**b), base, exponent)


def test_integers_broadcast_and_may_be_none() -> None:
    check(lambda a, b: a**b, BASES[:, None].contiguous(), EXPONENTS, dynamic=True)
    check(lambda a, b: a**b, BASES[:0], EXPONENTS[3])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.7, 7])
def test_floats_to_a_known_power_are_as_in_torch(exponent: float) -> None:
    check_both(lambda x: x**exponent, EDGES)


@pytest.mark.parametrize("exponent", [2, 3])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_one_integer_wraps_as_many_do(dtype: torch.dtype, exponent: int) -> None:
    numbers = torch.tensor([(1 << 33) + 5, 46341, 200, 17]).to(dtype)
    for one in numbers:
        check(lambda x: x**exponent, one.reshape(1))
    check_both(lambda x: x**exponent, numbers)
