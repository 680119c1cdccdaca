"""Functions of one complex number: right at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
from inputs import normal
from operators import as_pairs, check, check_both

from fx2onnx.errors import UnsupportedOps

X, Y = normal(3, 4, 4), normal(3, 4, 4) + 1

FUNCTIONS = {
    "exp": lambda z: z.exp(),
    "log": lambda z: z.log(),
    "log2": lambda z: z.log2(),
    "log10": lambda z: z.log10(),
    "sqrt": lambda z: z.sqrt(),
    "rsqrt": lambda z: z.rsqrt(),
    "square": lambda z: z.square(),
    "third power": lambda z: z**3,
    "power less than zero": lambda z: z**-2,
    "power that is no whole number": lambda z: z**1.5,
    "power of one half": lambda z: z**0.5,
    "sin": lambda z: z.sin(),
    "cos": lambda z: z.cos(),
    "sinh": lambda z: z.sinh(),
    "cosh": lambda z: z.cosh(),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_complex_numbers(name: str) -> None:
    check_both(as_pairs(FUNCTIONS[name]), X, Y)


@pytest.mark.parametrize("name", ["sqrt", "third power", "power that is no whole number", "exp", "cosh"])
def test_of_nothing(name: str) -> None:
    check(as_pairs(FUNCTIONS[name]), torch.zeros(2, 3), torch.zeros(2, 3))


@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh"])
def test_what_is_large_does_not_overflow_on_the_way(name: str) -> None:
    large = torch.tensor([88.9, -88.9, 60.0, 89.2])
    check(as_pairs(FUNCTIONS[name]), large, torch.full((4,), 1.5))
    check(as_pairs(FUNCTIONS[name]), torch.full((4,), 1.5), large)


def test_a_power_that_is_a_tensor_is_refused() -> None:
    with pytest.raises(UnsupportedOps, match="constant positive number"):
        check(as_pairs(lambda z: z**z), X, Y)
