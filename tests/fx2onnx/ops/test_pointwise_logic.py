"""Comparisons, conditions, bits and what is finite: right in ONNX Runtime at zeros, infinities and NaN, in every dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from inputs import EDGES, FINITE, INF, LEFT, RIGHT, TRUTH, WHOLE, operands
from operators import check, check_both, each, named

FUNCTIONS = [torch.isnan, torch.isinf, torch.isfinite, torch.isposinf, torch.isneginf, torch.nan_to_num]
COMPARISONS = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]
BITS = [torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, operator.and_, operator.or_, operator.xor]
ROWS = [
    ("nan_to_num with values", lambda x: torch.nan_to_num(x, 1.0, 2.0, -3.0), (EDGES,)),
    ("nan_to_num with one", lambda x: torch.nan_to_num(x, posinf=9.0), (EDGES,)),
    ("where of numbers", lambda x: torch.where(x > 0, 1, 2), (EDGES,)),
    ("where of a number and a tensor", lambda x: torch.where(x > 0, 1.5, x), (WHOLE,)),
    ("where of a tensor and a number", lambda x: torch.where(x > 0, x, 2), (EDGES,)),
    ("where promotes and broadcasts", torch.where, (TRUTH, WHOLE[:, :1], EDGES[:3])),
    ("where of booleans", torch.where, (TRUTH, TRUTH, ~TRUTH)),
    ("where of int16", torch.where, (TRUTH, WHOLE.short(), WHOLE.short() + 1)),
    ("masked_fill", lambda x, m: x.masked_fill(m, -INF), (WHOLE.float(), TRUTH)),
    ("masked_fill broadcasts", lambda x, m: x.masked_fill(m, 3), (WHOLE[:1], TRUTH)),
    ("masked_fill with a tensor", lambda x, m, v: x.masked_fill(m, v), (WHOLE.half(), TRUTH, torch.tensor(2.5))),
    ("masked_fill of booleans", lambda x, m: x.masked_fill(m, True), (~TRUTH, TRUTH)),
    ("isclose with NaN", lambda a, b: torch.isclose(a, b, rtol=0.1, equal_nan=True), (LEFT, RIGHT)),
    ("isclose of integers", lambda a: torch.isclose(a, a + 1, rtol=0.3), (WHOLE,)),
    ("logic of floats", lambda a, b: (a.logical_and(b), a.logical_or(b), a.logical_xor(b), a.logical_not()), (LEFT, RIGHT)),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=named)
def test_a_function_of_one_number_is_as_in_torch_also_at_zeros_infinities_and_nan(function: Callable[..., Any]) -> None:
    check(function, EDGES)


def test_they_take_lengths_never_seen_and_every_dtype() -> None:
    for x in (EDGES, EDGES.double(), WHOLE, WHOLE.to(torch.int8), TRUTH):
        check(each(FUNCTIONS), x, dynamic=True)
    check(lambda x: [f(x.bfloat16()).to(torch.float16) for f in FUNCTIONS], FINITE)


@pytest.mark.parametrize("x", [torch.tensor(0.3), torch.zeros(0, 3), torch.ones(1, 1)], ids=["0-d", "empty", "ones"])
def test_they_take_tensors_without_axes_and_without_elements(x: torch.Tensor) -> None:
    check(each(FUNCTIONS), x)


@pytest.mark.parametrize("opset", [18, 26])
def test_every_opset_has_the_functions(opset: int) -> None:
    check(each(FUNCTIONS), EDGES, options={"opset_version": opset})
    check(each([torch.isinf, torch.isnan]), EDGES.half(), options={"opset_version": opset})


@pytest.mark.parametrize(("function", "args"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_options_and_promotions_are_as_in_torch(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check(function, *args, dynamic=True)


def test_numbers_that_are_close() -> None:
    check_both(torch.isclose, LEFT, RIGHT)
    check(torch.isclose, LEFT.double(), RIGHT.double())
    check(torch.isclose, LEFT[3:].half(), RIGHT[3:].half())


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64])
def test_bits_are_combined_in_every_integer_dtype(dtype: torch.dtype) -> None:
    a, b = WHOLE.to(dtype), WHOLE.flip(1).to(dtype)
    check_both(lambda a, b: [f(a, b) for f in BITS] + [f(a, True) for f in BITS] + [~a], a, b)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_shifts_keep_the_sign_and_take_any_count(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    x = torch.tensor([info.min, info.min + 1, -5 if info.min else 5, 0, 1, 9, info.max], dtype=dtype)
    counts = torch.tensor([0, 1, 2, info.bits - 1, info.bits, 100], dtype=dtype)[:, None]
    check_both(lambda x, n: (x << n, x >> n), x, counts)
    check_both(lambda x: [shift(x, n) for n in (0, 1, 3, info.bits - 1, info.bits) for shift in (operator.lshift, operator.rshift)], x)
    check(lambda n: (torch.bitwise_left_shift(1, n), torch.bitwise_right_shift(64, n)), counts)


@given(operands())
@settings(max_examples=20, deadline=None, derandomize=True)
def test_any_two_operands_are_compared_and_combined_in_the_promoted_dtype(pair: list[Any]) -> None:
    a, b = pair
    functions = [*COMPARISONS, torch.add, torch.mul, torch.true_divide, torch.logical_and if isinstance(b, torch.Tensor) else torch.add]
    check(lambda a, b: [f(a, b) for f in functions], a, b)
