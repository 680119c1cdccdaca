"""Operators on each element alone: arithmetic, functions, comparisons, bits, activations, dtypes; against torch in ONNX Runtime."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import check, check_both
from torch import nn
from torch.nn import functional as F

from fx2onnx import to_onnx

NAN, INF = math.nan, math.inf
EDGES = torch.tensor([NAN, INF, -INF, -0.0, 0.0, 1e-7, -1e-7, 0.3, -0.7, 1.0, -1.0, 2.5, -2.5, 3.0, -6.0, 30.0, -30.0])
FINITE = EDGES[3:].contiguous()
WHOLE = torch.tensor([[-7, -3, -1], [0, 2, 5]])
TRUTH = torch.tensor([[True, False, True], [False, False, True]])
LEFT, RIGHT = (t.contiguous() for t in torch.meshgrid(EDGES[:12], EDGES[:12] * 3, indexing="ij"))
DIVIDEND, DIVISOR = (
    t.contiguous() for t in torch.meshgrid(torch.tensor([-7, -6, -1, 0, 5, 6]), torch.tensor([-3, -2, 1, 2, 4]), indexing="ij")
)

FUNCTIONS = [
    torch.abs, torch.neg, torch.sign, torch.sgn, torch.square, torch.sqrt, torch.rsqrt, torch.reciprocal, torch.exp, torch.exp2,
    torch.expm1, torch.log, torch.log2, torch.log10, torch.log1p, torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan,
    torch.sinh, torch.cosh, torch.tanh, torch.asinh, torch.acosh, torch.atanh, torch.erf, torch.erfc, torch.sinc, torch.deg2rad,
    torch.rad2deg, torch.sigmoid, torch.logit, torch.special.ndtr, torch.special.entr, torch.isnan, torch.isinf,
    torch.isfinite, torch.isposinf, torch.isneginf, torch.nan_to_num, torch.angle,
]  # fmt: skip
OF_FLOATS_ALONE = [
    torch.floor, torch.ceil, torch.round, torch.trunc, torch.frac, F.relu, F.relu6, F.leaky_relu, F.elu, F.celu, F.selu, F.silu, F.mish,
    F.hardtanh, F.hardsigmoid, F.hardswish, F.hardshrink, F.softshrink, F.tanhshrink, F.softplus, F.softsign, F.logsigmoid,
]  # fmt: skip
ARITHMETIC = [
    torch.add, torch.sub, torch.rsub, torch.mul, torch.div, torch.floor_divide, torch.remainder, torch.fmod, torch.maximum, torch.minimum,
    torch.fmax, torch.fmin, torch.atan2, torch.hypot, torch.heaviside, torch.logaddexp, torch.logaddexp2, torch.xlogy,
    torch.special.xlog1py, torch.pow, torch.float_power, torch.ldexp, torch.isclose,
]  # fmt: skip
OF_FLOATS = {torch.hypot, torch.logaddexp, torch.logaddexp2}
COMPARISONS = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]
BITS = [torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, operator.and_, operator.or_, operator.xor]


def named(function: Any) -> str:
    return getattr(function, "__name__", str(function))


def each(functions: list[Any]) -> Callable[..., Any]:
    """All of these functions of the same arguments, in one graph."""
    return lambda *args: [function(*args) for function in functions]


@pytest.mark.parametrize("function", [*FUNCTIONS, *OF_FLOATS_ALONE], ids=named)
def test_a_function_of_one_number_is_as_in_torch_also_at_zeros_infinities_and_nan(function: Callable[..., Any]) -> None:
    check(function, EDGES)


def test_functions_of_one_number_take_lengths_never_seen() -> None:
    check(each(FUNCTIONS), EDGES, dynamic=True)
    check(each(OF_FLOATS_ALONE), LEFT, dynamic=True)


@pytest.mark.parametrize("functions", [FUNCTIONS, OF_FLOATS_ALONE], ids=["functions", "activations"])
def test_float64_is_computed_in_float64(functions: list[Any]) -> None:
    check(each(functions), EDGES.double())
    check_both(F.gelu, FINITE.double())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("functions", [FUNCTIONS, OF_FLOATS_ALONE], ids=["functions", "activations"])
def test_half_precision_is_as_near_as_half_precision_can_be(functions: list[Any], dtype: torch.dtype) -> None:
    check(lambda x: [f(x.to(dtype)).to(torch.float16) for f in functions], FINITE)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_functions_of_integers_give_what_torch_promotes_them_to(dtype: torch.dtype) -> None:
    unsuited = {torch.special.entr, torch.logit}
    check(each([f for f in FUNCTIONS if f not in unsuited]), WHOLE.to(dtype), dynamic=True)
    check(each([torch.floor, torch.ceil, torch.round, torch.trunc, F.relu, F.relu6]), WHOLE.to(dtype))


def test_functions_of_booleans_give_what_torch_promotes_them_to() -> None:
    check(each([f for f in FUNCTIONS if f not in (torch.abs, torch.neg)]), TRUTH, dynamic=True)


@pytest.mark.parametrize("x", [torch.tensor(0.3), torch.zeros(0, 3), torch.ones(1, 1)], ids=["0-d", "empty", "ones"])
def test_functions_take_tensors_without_axes_and_without_elements(x: torch.Tensor) -> None:
    check(each([*FUNCTIONS, *OF_FLOATS_ALONE]), x)
    check(lambda x: [torch.erf(x.double()), torch.atan(x.double())], x)


@pytest.mark.parametrize("opset", [18, 26])
def test_every_opset_has_the_functions(opset: int) -> None:
    options = {"opset_version": opset}
    check(each([*FUNCTIONS, *OF_FLOATS_ALONE]), EDGES, options=options)
    check(each([torch.isinf, torch.isnan, F.relu, torch.round]), EDGES.half(), options=options)


def test_opset_26_sees_the_sign_of_nan() -> None:
    check(lambda x: (torch.signbit(x), torch.copysign(torch.ones(()), x)), EDGES, options={"opset_version": 26})
    check(lambda x: torch.signbit(x), EDGES.half(), options={"opset_version": 26})
    check(lambda x: torch.signbit(x), EDGES.double(), options={"opset_version": 26})


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_gelu_is_one_node_or_its_formula(approximate: str, dtype: torch.dtype, opset: int) -> None:
    def gelu(x: torch.Tensor) -> torch.Tensor:
        made = F.gelu(x.to(dtype), approximate=approximate)
        return made.half() if dtype == torch.bfloat16 else made

    check(gelu, FINITE, options={"opset_version": opset})


def test_logarithms_of_powers_are_whole_numbers() -> None:
    check(
        lambda x: (torch.log2(x).floor(), torch.log10(x).floor()), torch.tensor([2.0**i for i in range(64)] + [10.0**i for i in range(38)])
    )


def test_small_numbers_keep_their_digits() -> None:
    small = torch.tensor([1e-3, 1e-5, -1e-7, 1e-8, 1e-12, -1e-20])
    check_both(lambda x: (torch.log1p(x) / x, torch.expm1(x) / x), small)


ROWS = [
    ("round to decimals", lambda x: torch.round(x, decimals=1), (EDGES,)),
    ("round to tens", lambda x: torch.round(x, decimals=-1), (EDGES,)),
    ("round halves to even", torch.round, (torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5]),)),
    ("logit with eps", lambda x: torch.logit(x, 0.1), (torch.tensor([0.0, 0.05, 0.4, 1.0, NAN]),)),
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
    ("lerp by a number", lambda a, b: torch.lerp(a, b, 0.3), (LEFT, RIGHT)),
    ("lerp ends at its end", lambda a, b: torch.lerp(a, b, 1.0), (torch.tensor([1e8]), torch.tensor([1.0]))),
    ("lerp by a tensor", torch.lerp, (FINITE, FINITE * 2, FINITE.sigmoid())),
    ("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=0.5), (LEFT, LEFT, RIGHT)),
    ("addcmul of integers", lambda x: torch.addcmul(x, x, x, value=2), (WHOLE,)),
    ("addcdiv", lambda x, a, b: torch.addcdiv(x, a, b, value=-2), (LEFT, LEFT, RIGHT)),
    ("isclose with NaN", lambda a, b: torch.isclose(a, b, rtol=0.1, equal_nan=True), (LEFT, RIGHT)),
    ("isclose of integers", lambda a: torch.isclose(a, a + 1, rtol=0.3), (WHOLE,)),
    ("add with alpha", lambda a, b: torch.add(a, b, alpha=2), (LEFT, RIGHT)),
    ("add booleans", torch.add, (TRUTH, ~TRUTH[0])),
    ("add promotes", torch.add, (WHOLE, torch.tensor(1.5))),
    ("sub with alpha", lambda a, b: torch.sub(a, b, alpha=3), (WHOLE, WHOLE)),
    ("a number minus a tensor", lambda x: 1 - x, (WHOLE,)),
    ("rsub with alpha", lambda x: torch.rsub(x, 2.5, alpha=2), (EDGES,)),
    ("mul booleans", torch.mul, (TRUTH, ~TRUTH)),
    ("booleans times a number", lambda x: x * 2, (TRUTH,)),
    ("a number over a tensor", lambda x: 2 / x, (WHOLE,)),
    ("a power of a number", lambda x: 2**x, (WHOLE.abs(),)),
    ("a float to the integers", lambda x: 1.5**x, (WHOLE,)),
    ("integers to a float", lambda x: x**0.5, (WHOLE,)),
    ("integers to an integer wrap", lambda x: x**5, (torch.tensor([3, -3, 1 << 15, -(1 << 40), 3**12]),)),
    ("integers to integers", torch.pow, (WHOLE, WHOLE.abs())),
    ("zero to negative integers", torch.pow, (DIVISOR.T.contiguous(), DIVIDEND.T.contiguous())),
    ("int8 to an integer", lambda x: x**2, (WHOLE.to(torch.int8) * 18,)),
    ("a matrix to integers", lambda x, n: x**n, (LEFT, torch.tensor(3))),
    ("float_power of a number", lambda x: torch.float_power(2, x), (WHOLE,)),
    ("copysign", torch.copysign, (LEFT[1:, 1:].contiguous(), RIGHT[1:, 1:].contiguous())),
    ("copysign of integers", torch.copysign, (WHOLE, WHOLE.flip(1))),
    ("signbit", torch.signbit, (EDGES[1:].contiguous(),)),
    ("signbit of integers", lambda x: (torch.signbit(x), torch.signbit(x > 0)), (WHOLE,)),
    ("copysign of a number", lambda x: torch.copysign(x, -0.0), (EDGES,)),
    ("xlogy of a number", lambda x: torch.xlogy(0, x), (EDGES,)),
    ("xlogy by a number", lambda x: torch.xlogy(x, 2), (EDGES,)),
    ("max of two", torch.max, (LEFT, RIGHT)),
    ("min of two promotes", torch.min, (WHOLE, torch.tensor(1.5))),
    ("maximum of booleans", lambda a: (torch.maximum(a, ~a), torch.minimum(a, a[0]), torch.fmax(a, a)), (TRUTH,)),
    ("logic of floats", lambda a, b: (a.logical_and(b), a.logical_or(b), a.logical_xor(b), a.logical_not()), (LEFT, RIGHT)),
    ("heaviside of booleans", torch.heaviside, (TRUTH, ~TRUTH)),
    ("threshold", lambda x: F.threshold(x, 0.3, -2.0), (EDGES,)),
    ("threshold of integers", lambda x: F.threshold(x, 1, -2), (WHOLE,)),
    ("leaky_relu with a slope", lambda x: F.leaky_relu(x, 0.3), (EDGES,)),
    ("elu with alpha", lambda x: F.elu(x, 0.5), (EDGES,)),
    ("elu with scales", lambda x: torch.ops.aten.elu(x, 0.5, 2.0, 1.5), (EDGES,)),
    ("celu with alpha", lambda x: F.celu(x, 0.5), (EDGES,)),
    ("hardtanh with bounds", lambda x: F.hardtanh(x, -2, 0.5), (EDGES,)),
    ("hardtanh of integers", lambda x: F.hardtanh(x, -2, 2), (WHOLE,)),
    ("hardshrink with lambda", lambda x: F.hardshrink(x, 1.0), (EDGES,)),
    ("softshrink with lambda", lambda x: F.softshrink(x, 1.0), (EDGES,)),
    ("softplus with beta", lambda x: F.softplus(x, 0.5), (EDGES,)),
    ("softplus with a threshold", lambda x: F.softplus(x, 2.0, 1.0), (EDGES,)),
    ("softplus of float64", lambda x: F.softplus(x, 2.0, 20.0), (EDGES.double(),)),
    ("rrelu in evaluation", lambda x: F.rrelu(x, 0.1, 0.5, False), (EDGES,)),
    ("prelu", F.prelu, (LEFT.view(2, 6, 12), torch.linspace(-1, 1, 6))),
    ("prelu with one slope", F.prelu, (WHOLE.float(), torch.tensor([0.3]))),
    ("prelu of a vector", F.prelu, (FINITE, torch.tensor([0.3]))),
    ("prelu without axes", F.prelu, (torch.tensor(-2.0), torch.tensor([0.3]))),
    ("prelu of float64", F.prelu, (LEFT.double(), torch.linspace(-1, 1, 12).double())),
    ("glu", lambda x: F.glu(x), (LEFT,)),
    ("glu along another axis", lambda x: F.glu(x, 0), (LEFT,)),
    ("glu along a negative axis", lambda x: F.glu(x, -2), (torch.rand(3, 4, 5),)),
    ("gelu", F.gelu, (FINITE,)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_options_and_promotions_are_as_in_torch(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check(function, *args, dynamic=True)


@pytest.mark.parametrize("function", ARITHMETIC, ids=named)
def test_two_floats_give_what_they_give_in_torch_also_zeros_infinities_and_nan(function: Callable[..., Any]) -> None:
    check(function, LEFT, RIGHT)


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


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.7, 7])
def test_floats_to_a_known_power_are_as_in_torch(exponent: float) -> None:
    check_both(lambda x: x**exponent, EDGES)


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


DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]


@st.composite
def operands(draw: st.DrawFn) -> list[Any]:
    """Two tensors that broadcast, of any two dtypes, one of which may be a number."""
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3))
    values = st.sampled_from([0, 1, 2, 3, 4, 7])
    made: list[Any] = []
    for _ in range(2):
        own = [draw(st.sampled_from([1, size])) for size in sizes[draw(st.integers(0, len(sizes))) :]]
        elements = [draw(values) for _ in range(math.prod(own))]
        made.append(torch.tensor(elements, dtype=torch.float64).reshape(own).to(draw(st.sampled_from(DTYPES))))
    number = draw(st.sampled_from([None, None, 2, 0.5, True]))
    return made if number is None else [made[0], number]


@given(operands())
@settings(max_examples=20, deadline=None, derandomize=True)
def test_any_two_operands_are_compared_and_combined_in_the_promoted_dtype(pair: list[Any]) -> None:
    a, b = pair
    functions = [*COMPARISONS, torch.add, torch.mul, torch.true_divide, torch.logical_and if isinstance(b, torch.Tensor) else torch.add]
    check(lambda a, b: [f(a, b) for f in functions], a, b)


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


IN_PLACE = [
    "x.add_(1).mul_(2).sub_(x, alpha=2).div_(3)", "x.div_(0.3, rounding_mode='floor')", "x.floor_divide_(2.5)", "x.remainder_(0.7)",
    "x.fmod_(0.7)", "x.pow_(2)", "x.abs_().pow_(x)", "x.float_power_(2)", "x.sqrt_()", "x.exp_()", "x.log1p_()", "x.neg_()", "x.sign_()",
    "x.clamp_(-1, 1)", "x.clamp_min_(0)", "x.masked_fill_(x > 0, 2.0)", "x.masked_fill_(x > 0, torch.tensor(2.0))", "x.zero_()",
    "x.fill_(3)", "x.fill_(torch.tensor(4))", "x.copy_(torch.ones(4))", "x.eq_(1)", "x.gt_(0)", "x.logical_not_()", "x.lerp_(x * 2, 0.3)",
    "x.addcmul_(x, x)", "x.nan_to_num_(2.0)", "x.ldexp_(torch.tensor(2))", "x.copysign_(-1.0)", "x.round_(decimals=1)", "x.relu_()",
    "F.elu_(x)", "F.silu(x, inplace=True)", "F.hardtanh(x, inplace=True)", "F.mish(x, inplace=True)", "F.threshold_(x, 0.1, 1.0)",
    "F.leaky_relu_(x)", "F.hardswish(x, inplace=True)", "F.celu(x, inplace=True)", "F.selu(x, inplace=True)", "x.sigmoid_()", "x.tanh_()",
    "x.detach_()", "x.requires_grad_(False)", "x.atan2_(x)", "x.xlogy_(x.abs())", "x.square_().trunc_()", "x.logit_(0.1)",
]  # fmt: skip


@pytest.mark.parametrize("written", IN_PLACE)
def test_in_place_forms_write_what_the_functions_return(written: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x = (x.double() if "power" in written else x) + 0
        eval(written, {"torch": torch, "F": F, "x": x})
        return x

    check(function, torch.randn(3, 4))


@pytest.mark.parametrize("operation", [operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift])
def test_in_place_operators_of_bits_write_their_result(operation: Callable[..., Any]) -> None:
    check_both(lambda x, y: (operation(x.clone(), y), operation(x.clone(), 1)), WHOLE, WHOLE.abs())


SAME = [
    "x.clone()", "x.contiguous()", "x.detach()", "x.to(x.dtype)", "x.to('cpu')", "x.type_as(x)", "+x", "x.conj()", "x.resolve_conj()",
    "x.resolve_neg()", "x.real", "torch.ops.aten.alias(x)", "torch.ops.aten.lift_fresh(x)", "x.float()", "x.to(torch.zeros(1))",
    "x.pow(1)", "F.dropout(x, 0.5, False)",
]  # fmt: skip


@pytest.mark.parametrize("written", SAME)
def test_what_changes_nothing_becomes_no_node(written: str) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return eval(written, {"torch": torch, "F": F, "x": x}) * 2

    check(Model(), torch.randn(3))
    assert [node.op_type for node in to_onnx(Model(), (torch.randn(3),)).model.graph] == ["Mul"]


@pytest.mark.parametrize("source", [*DTYPES, torch.int16])
def test_every_dtype_is_cast_to_every_other(source: torch.dtype) -> None:
    x = torch.tensor([0, 1, 3, 100]).to(source)
    check_both(lambda x: [x.to(target) for target in [*DTYPES, torch.int16]], x)
    check(lambda x, y: (x.type_as(y), x.to(y), x.to("cpu", torch.int32), x.double(), x.bool()), x, torch.zeros(1))


def test_floats_are_truncated_and_large_integers_wrap_in_casts() -> None:
    check(lambda x: (x.long(), x.int(), x.bool()), torch.tensor([-1.9, 0.5, 1.9, -0.0]))
    check(lambda x: (x.int(), x.to(torch.int8), x.to(torch.uint8)), torch.tensor([1 << 33, -1, 300, -300]))


def test_copies_take_the_dtype_and_the_sizes_of_what_they_are_written_into() -> None:
    check_both(lambda x, y: torch.ops.aten.copy(x, y), torch.zeros(2, 3), torch.arange(3))
    check_both(lambda x: (torch.ops.aten.fill(x, 2), torch.ops.aten.zero(x)), WHOLE)
    check(lambda x: torch.ops.aten.fill(x, torch.tensor(2.5)), torch.tensor(1))
