"""Common divisors and multiples, at the ends of each type as well."""

from __future__ import annotations

import pytest
import torch
from inputs import OWN, ints, whole
from operators import check_both

TYPES = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def both(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The divisor and the multiple."""
    return torch.gcd(a, b), torch.lcm(a, b)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_divisors_and_multiples_up_to_the_ends_of_a_type(dtype: torch.dtype) -> None:
    ends = torch.iinfo(dtype)
    given = torch.tensor([0, 1, 2, 12, 18, 100, 97, ends.max, ends.max - 1, ends.min // 2, ends.max // 3 * 2], dtype=dtype)
    check_both(both, *torch.meshgrid(given, given, indexing="ij"), options=OWN)
    least = torch.tensor([ends.min, 0, ends.min, ends.min], dtype=dtype)  # others end torch's process: it divides by -1
    check_both(both, least, torch.tensor([0, ends.min, 1, ends.min // 2], dtype=dtype), options=OWN)


def test_divisors_of_what_a_float64_does_not_hold() -> None:
    check_both(both, whole(5, 7, low=-(2**62), high=2**62), whole(7, low=2**40, high=2**62), options=OWN)


def test_divisors_of_other_sizes_and_of_nothing() -> None:
    check_both(both, whole(4, 1, 3), whole(5, 1), options=OWN)
    check_both(both, ints(), ints(), options=OWN)
    check_both(both, ints(12)[0], ints(18)[0], options=OWN)
