"""Arithmetic on each element alone: right in ONNX Runtime at zeros, infinities and NaN, in every dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import EDGES, FINITE, INF, LEFT, NAN, RIGHT, TRUTH, WHOLE, operands
from operators import check, check_both, each, named, nodes_of

DIVIDEND, DIVISOR = (
    t.contiguous() for t in torch.meshgrid(torch.tensor([-7, -6, -1, 0, 5, 6]), torch.tensor([-3, -2, 1, 2, 4]), indexing="ij")
)
ARITHMETIC = [
    torch.add, torch.sub, torch.rsub, torch.mul, torch.div, torch.floor_divide, torch.remainder, torch.fmod, torch.maximum,
    torch.minimum, torch.fmax, torch.fmin, torch.hypot, torch.heaviside, torch.pow, torch.float_power, torch.ldexp,
]  # fmt: skip
OF_FLOATS = {torch.hypot}


def _fitting_power(base: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """To exponents that leave integers within int64, for which alone a power is defined."""
    return base ** exponent.clamp(max=5)


ROWS = [
    ("clamp", lambda x: torch.clamp(x, -1, 2.5), (EDGES,)),
    ("clamp from below", lambda x: x.clamp(min=0), (EDGES,)),
    ("clamp_max", lambda x: x.clamp_max(0.5), (EDGES,)),
    ("clamp_min with a tensor", torch.clamp_min, (EDGES, torch.tensor(0.2))),
    ("clamp with bounds crossed", lambda x: x.clamp(2, 1), (EDGES,)),
    ("clamp between tensors", torch.clamp, (LEFT, RIGHT, RIGHT.T.contiguous())),
    ("clamp up to NaN", lambda x: x.clamp(max=NAN), (FINITE,)),
    ("clamp integers by a float", lambda x: x.clamp(min=0.5), (WHOLE,)),
    ("clamp integers", lambda x: x.clamp(-1, 3), (WHOLE,)),
    ("clip int16", lambda x: x.clip(-1, 3), (WHOLE.short(),)),
    ("divide halves by more than they hold", lambda x: x / 100000, (torch.tensor([0.0, -2, 6e4]).half(),)),
    ("multiply halves by more than they hold", lambda x: x * 1e5, (torch.tensor([0.0, 1e-3, 0.3]).half(),)),
    ("multiply halves by less than they hold", lambda x: x * 1e-9, (torch.tensor([0.0, -2, 6e4]).half(),)),
    ("divide more than halves hold", lambda x: 1e5 / x, (torch.tensor([-2, 6e4]).half(),)),
    ("lerp by a number", lambda a, b: torch.lerp(a, b, 0.3), (LEFT, RIGHT)),
    ("lerp ends at its end", lambda a, b: torch.lerp(a, b, 1.0), (torch.tensor([1e8]), torch.tensor([1.0]))),
    ("lerp by a tensor", torch.lerp, (FINITE, FINITE * 2, FINITE.sigmoid())),
    ("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=0.5), (LEFT, LEFT, RIGHT)),
    ("addcmul of integers", lambda x: torch.addcmul(x, x, x, value=2), (WHOLE,)),
    ("addcdiv", lambda x, a, b: torch.addcdiv(x, a, b, value=-2), (LEFT, LEFT, RIGHT)),
    ("add with alpha", lambda a, b: torch.add(a, b, alpha=2), (LEFT, RIGHT)),
    ("add booleans", torch.add, (TRUTH, ~TRUTH[0])),
    ("add promotes", torch.add, (WHOLE, torch.tensor(1.5))),
    ("sub with alpha", lambda a, b: torch.sub(a, b, alpha=3), (WHOLE, WHOLE)),
    ("a number minus a tensor", lambda x: 1 - x, (WHOLE,)),
    ("rsub with alpha", lambda x: torch.rsub(x, 2.5, alpha=2), (EDGES,)),
    ("mul booleans", torch.mul, (TRUTH, ~TRUTH)),
    ("booleans times a number", lambda x: x * 2, (TRUTH,)),
    ("a number over a tensor", lambda x: 2 / x, (WHOLE,)),
    ("a power of a number", lambda x: 2 ** x.clamp(max=62), (WHOLE.abs(),)),
    ("a float to the integers", lambda x: 1.5**x, (WHOLE,)),
    ("integers to a float", lambda x: x**0.5, (WHOLE,)),
    ("integers to an integer wrap", lambda x: x**5, (torch.tensor([3, -3, 1 << 15, -(1 << 40), 3**12]),)),
    ("integers to integers", _fitting_power, (WHOLE, WHOLE.abs())),
    ("zero to negative integers", _fitting_power, (DIVISOR.T.contiguous(), DIVIDEND.T.contiguous())),
    ("int8 to an integer", lambda x: x**2, (WHOLE.to(torch.int8) * 18,)),
    ("a matrix to integers", lambda x, n: x**n, (LEFT, torch.tensor(3))),
    ("float_power of a number", lambda x: torch.float_power(2, x), (WHOLE,)),
    ("copysign", torch.copysign, (LEFT[1:, 1:].contiguous(), RIGHT[1:, 1:].contiguous())),
    ("copysign of integers", torch.copysign, (WHOLE, WHOLE.flip(1))),
    ("signbit", torch.signbit, (EDGES[1:].contiguous(),)),
    ("signbit of integers", lambda x: (torch.signbit(x), torch.signbit(x > 0)), (WHOLE,)),
    ("copysign of a number", lambda x: torch.copysign(x, -0.0), (EDGES,)),
    ("max of two", torch.max, (LEFT, RIGHT)),
    ("min of two promotes", torch.min, (WHOLE, torch.tensor(1.5))),
    ("maximum of booleans", lambda a: (torch.maximum(a, ~a), torch.minimum(a, a[0]), torch.fmax(a, a)), (TRUTH,)),
    ("heaviside of booleans", torch.heaviside, (TRUTH, ~TRUTH)),
]  # fmt: skip


def test_opset_26_sees_the_sign_of_nan() -> None:
    check(lambda x: (torch.signbit(x), torch.copysign(torch.ones(()), x)), EDGES, options={"opset_version": 26})
    check(lambda x: torch.signbit(x), EDGES.half(), options={"opset_version": 26})
    check(lambda x: torch.signbit(x), EDGES.double(), options={"opset_version": 26})


@pytest.mark.parametrize(("function", "args"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_options_and_promotions_are_as_in_torch(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check(function, *args, dynamic=True)


@pytest.mark.parametrize("function", ARITHMETIC, ids=named)
def test_two_floats_give_what_they_give_in_torch_also_zeros_infinities_and_nan(function: Callable[..., Any]) -> None:
    check(function, LEFT, RIGHT)


@pytest.mark.parametrize(
    "x", [EDGES, EDGES.double(), EDGES.half(), WHOLE, WHOLE.to(torch.uint8), TRUTH, torch.tensor(0.3), torch.zeros(0, 3)], ids=str
)
def test_squares_are_as_in_torch(x: torch.Tensor) -> None:
    check_both(torch.square, x)


def test_0_is_not_added_to_integers_but_to_floats() -> None:
    assert nodes_of(lambda x: (x + 0) * 2, WHOLE) == nodes_of(lambda x: (0 + x) * 2, WHOLE) == ["Mul"]
    assert nodes_of(lambda x: (x + 0) * 2, torch.tensor([-0.0])) == ["Add", "Mul"]


def test_two_floats_of_any_size_and_precision_do_too() -> None:
    check(each(ARITHMETIC), LEFT, RIGHT, dynamic=True)
    check(each(ARITHMETIC), LEFT.double(), RIGHT.double())
    rough = (torch.ldexp, torch.fmod, torch.remainder, torch.floor_divide)
    check(each([f for f in ARITHMETIC if f not in rough]), LEFT[3:].half(), RIGHT[3:].half())


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8])
def test_integers_are_divided_with_the_signs_of_torch(dtype: torch.dtype) -> None:
    rules = [
        torch.div, torch.floor_divide, torch.remainder, torch.fmod,
        lambda a, b: torch.div(a, b, rounding_mode="floor"), lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    ]  # fmt: skip
    check_both(lambda a, b: [rule(a, b) for rule in rules], DIVIDEND.to(dtype), DIVISOR.to(dtype))
    check_both(lambda a: [rule(a, b) for rule in rules for b in (3, -2)], DIVIDEND.to(dtype))


def test_small_integers_are_divided_without_overflow() -> None:
    lowest = torch.tensor([-128, -127, 126, 127], dtype=torch.int8)
    check(lambda x: (x // 3, x % 3, x // -5), lowest)
    check(lambda x: (x // 3, x % 3), lowest.view(torch.uint8))


@pytest.mark.parametrize("divisor", [2, 0.1, -0.3, 0.0, INF])
def test_floats_are_divided_by_numbers_with_the_signs_of_torch(divisor: float) -> None:
    x = torch.cat([EDGES, torch.arange(-5, 5) * 0.1, torch.arange(9) * 1.5])
    check_both(lambda x: (x // divisor, x % divisor, torch.fmod(x, divisor), torch.div(x, divisor, rounding_mode="trunc")), x)


def test_the_rest_of_a_division_is_exact_beyond_what_a_float64_holds() -> None:
    large = torch.tensor([2**62 + 1, -(2**62) - 3, 2**53 + 1, 7, -7, 0])
    check_both(lambda x, y: (torch.fmod(x, y), torch.fmod(x, 10), torch.remainder(x, y)), large, torch.tensor([3, 7, -5, 2, 2, 9]))


def test_integers_of_more_than_31_bits_are_compared_as_they_are() -> None:
    """ONNX Runtime's Max takes 5 for larger than 2^31, in vectors of some lengths."""
    x = torch.tensor([0, 5, 1 << 31, (1 << 31) + 7, -(1 << 31), 3 << 31, (3 << 31) - 9] * 5)
    check(lambda x: (torch.maximum(x, x.flip(0)), torch.minimum(x, x.flip(0)), x.clamp(min=5), x.clamp(max=5), x.fmax(x.roll(1))), x)


@given(operands(), st.sampled_from([f for f in ARITHMETIC if f not in OF_FLOATS]))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_two_operands_that_torch_takes_give_what_they_give_in_torch(pair: list[Any], function: Callable[..., Any]) -> None:
    try:
        function(*pair)
    except (RuntimeError, TypeError):
        return
    check(function, *pair, dynamic=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.shape[0] + x.shape[1],
        lambda x: x.long() % x.shape[1] // x.shape[0],
        lambda x: x / x.shape[0] ** 0.5,
        lambda x: (x.clamp(max=x.shape[1]), x > x.shape[0], x.long() << x.shape[0]),
        lambda x: torch.where(x > 0, x.shape[0], x.long()).masked_fill(x > 2, x.shape[1]),
        lambda x: x.new_zeros(3).fill_(x.shape[0]) - x.shape[1] // 2,
        lambda x: torch.add(x, x, alpha=x.shape[0]),
    ],
    ids=["mul, add", "remainder, floor_divide", "div", "clamp, gt, shift", "where, masked_fill", "fill", "alpha"],
)
def test_operands_may_be_sizes(function: Callable[..., Any]) -> None:
    check_both(function, torch.randn(2, 3) * 3)
