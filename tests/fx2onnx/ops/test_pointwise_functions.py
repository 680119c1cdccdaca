"""Functions of one number, rounding, logarithms: right in ONNX Runtime at zeros, infinities and NaN, in every dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import EDGES, FINITE, LEFT, NAN, RIGHT, TRUTH, WHOLE
from operators import check, check_both, each, named

FUNCTIONS = [
    torch.abs, torch.neg, torch.sign, torch.sgn, torch.sqrt, torch.rsqrt, torch.reciprocal, torch.exp, torch.exp2, torch.expm1,
    torch.log, torch.log2, torch.log10, torch.log1p, torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan, torch.sinh,
    torch.cosh, torch.tanh, torch.asinh, torch.acosh, torch.atanh, torch.erf, torch.erfc, torch.sinc, torch.deg2rad, torch.rad2deg,
    torch.sigmoid, torch.logit, torch.special.ndtr, torch.special.entr, torch.angle,
]  # fmt: skip
ROUNDED = [torch.floor, torch.ceil, torch.round, torch.trunc, torch.frac]
OF_TWO = [torch.atan2, torch.logaddexp, torch.logaddexp2, torch.xlogy, torch.special.xlog1py]
ROWS = [
    ("round to decimals", lambda x: torch.round(x, decimals=1), (EDGES,)),
    ("round to tens", lambda x: torch.round(x, decimals=-1), (EDGES,)),
    ("round halves to even", torch.round, (torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5]),)),
    ("logit with eps", lambda x: torch.logit(x, 0.1), (torch.tensor([0.0, 0.05, 0.4, 1.0, NAN]),)),
    ("xlogy of a number", lambda x: torch.xlogy(0, x), (EDGES,)),
    ("xlogy by a number", lambda x: torch.xlogy(x, 2), (EDGES,)),
]  # fmt: skip


@pytest.mark.parametrize("function", [*FUNCTIONS, *ROUNDED], ids=named)
def test_a_function_of_one_number_is_as_in_torch_also_at_zeros_infinities_and_nan(function: Callable[..., Any]) -> None:
    check(function, EDGES)


def test_functions_of_one_number_take_lengths_never_seen() -> None:
    check(each(FUNCTIONS), EDGES, dynamic=True)
    check(each(ROUNDED), LEFT, dynamic=True)


def test_float64_is_computed_in_float64() -> None:
    check(each([*FUNCTIONS, *ROUNDED]), EDGES.double())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_as_near_as_half_precision_can_be(dtype: torch.dtype) -> None:
    check(lambda x: [f(x.to(dtype)).to(torch.float16) for f in [*FUNCTIONS, *ROUNDED]], FINITE)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_functions_of_integers_give_what_torch_promotes_them_to(dtype: torch.dtype) -> None:
    unsuited = {torch.special.entr, torch.logit, torch.erfc}
    of_one_minus = {torch.float32: (1e-4, 1e-6)}  # ONNX has no Erfc: it is 1 - Erf(x), and as exact as numbers near 1
    check(torch.erfc, WHOLE.to(dtype), dynamic=True, tolerances=of_one_minus)
    check(each([f for f in FUNCTIONS if f not in unsuited]), WHOLE.to(dtype), dynamic=True)
    check(each([torch.floor, torch.ceil, torch.round, torch.trunc]), WHOLE.to(dtype))


def test_functions_of_booleans_give_what_torch_promotes_them_to() -> None:
    check(each([f for f in FUNCTIONS if f not in (torch.abs, torch.neg)]), TRUTH, dynamic=True)


@pytest.mark.parametrize("x", [torch.tensor(0.3), torch.zeros(0, 3), torch.ones(1, 1)], ids=["0-d", "empty", "ones"])
def test_functions_take_tensors_without_axes_and_without_elements(x: torch.Tensor) -> None:
    check(each([*FUNCTIONS, *ROUNDED]), x)
    check(lambda x: [torch.erf(x.double()), torch.atan(x.double())], x)


@pytest.mark.parametrize("opset", [18, 26])
def test_every_opset_has_the_functions(opset: int) -> None:
    check(each([*FUNCTIONS, *ROUNDED]), EDGES, options={"opset_version": opset})
    check(torch.round, EDGES.half(), options={"opset_version": opset})


def test_logarithms_of_powers_are_whole_numbers() -> None:
    check(
        lambda x: (torch.log2(x).floor(), torch.log10(x).floor()), torch.tensor([2.0**i for i in range(64)] + [10.0**i for i in range(38)])
    )


def test_small_numbers_keep_their_digits() -> None:
    small = torch.tensor([1e-3, 1e-5, -1e-7, 1e-8, 1e-12, -1e-20])
    check_both(lambda x: (torch.log1p(x) / x, torch.expm1(x) / x), small)


@pytest.mark.parametrize(("function", "args"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_options_and_promotions_are_as_in_torch(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check(function, *args, dynamic=True)


@pytest.mark.parametrize("function", OF_TWO, ids=named)
def test_two_floats_give_what_they_give_in_torch_also_zeros_infinities_and_nan(function: Callable[..., Any]) -> None:
    check(function, LEFT, RIGHT)


def test_two_floats_of_any_size_and_precision_do_too() -> None:
    check(each(OF_TWO), LEFT, RIGHT, dynamic=True)
    check(each(OF_TWO), LEFT.double(), RIGHT.double())
    check(each(OF_TWO), LEFT[3:].half(), RIGHT[3:].half())
