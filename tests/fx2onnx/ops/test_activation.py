"""Activations: right in ONNX Runtime at zeros, infinities and NaN, in every dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from inputs import EDGES, FINITE, LEFT, RIGHT, WHOLE
from operators import check, check_both, each, named

ACTIVATIONS = [
    F.relu, F.relu6, F.leaky_relu, F.elu, F.celu, F.selu, F.silu, F.mish, F.hardtanh, F.hardsigmoid, F.hardswish, F.hardshrink,
    F.softshrink, F.softplus, F.softsign, F.logsigmoid,
]  # fmt: skip
OF_NEARLY_EQUAL = {torch.float32: (1e-4, 1e-6)}  # x - tanh(x) of small numbers is the rounding of both, in eager too
ROWS = [
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
    # of LEFT, infinity would meet a sigmoid that eager has as 1e-42 and ONNX Runtime as 0
    ("glu along another axis", lambda x: F.glu(x, 0), (RIGHT,)),
    ("glu along a negative axis", lambda x: F.glu(x, -2), (torch.rand(3, 4, 5),)),
    ("gelu", F.gelu, (FINITE,)),
]  # fmt: skip


@pytest.mark.parametrize("function", ACTIVATIONS, ids=named)
def test_an_activation_is_as_in_torch_also_at_zeros_infinities_and_nan(function: Callable[..., Any]) -> None:
    check(function, EDGES)


def test_activations_take_sizes_never_seen() -> None:
    check(each(ACTIVATIONS), LEFT, dynamic=True)


@pytest.mark.parametrize("options", [{}, {"opset_version": 18}, {"opset_version": 26}], ids=str)
@pytest.mark.parametrize("x", [EDGES, LEFT, torch.tensor(0.3), torch.zeros(0, 3), torch.ones(1, 1)], ids=lambda x: str(list(x.shape)))
def test_tanhshrink_is_as_near_as_numbers_that_cancel_can_be(x: torch.Tensor, options: dict[str, Any]) -> None:
    check_both(F.tanhshrink, x, options=options, tolerances=OF_NEARLY_EQUAL)


def test_float64_is_computed_in_float64() -> None:
    check(each([*ACTIVATIONS, F.tanhshrink]), EDGES.double())
    check_both(F.gelu, FINITE.double())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_as_near_as_half_precision_can_be(dtype: torch.dtype) -> None:
    check(lambda x: [f(x.to(dtype)).to(torch.float16) for f in [*ACTIVATIONS, F.tanhshrink]], FINITE)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_rectifiers_take_integers(dtype: torch.dtype) -> None:
    check(each([F.relu, F.relu6]), WHOLE.to(dtype))


@pytest.mark.parametrize("x", [torch.tensor(0.3), torch.zeros(0, 3), torch.ones(1, 1)], ids=["0-d", "empty", "ones"])
def test_activations_take_tensors_without_axes_and_without_elements(x: torch.Tensor) -> None:
    check(each(ACTIVATIONS), x)


@pytest.mark.parametrize("opset", [18, 26])
def test_every_opset_has_the_activations(opset: int) -> None:
    check(each(ACTIVATIONS), EDGES, options={"opset_version": opset})
    check(F.relu, EDGES.half(), options={"opset_version": opset})


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_gelu_is_one_node_or_its_formula(approximate: str, dtype: torch.dtype, opset: int) -> None:
    def gelu(x: torch.Tensor) -> torch.Tensor:
        made = F.gelu(x.to(dtype), approximate=approximate)
        return made.half() if dtype == torch.bfloat16 else made

    check(gelu, FINITE, options={"opset_version": opset})


@pytest.mark.parametrize(("function", "args"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_options_and_promotions_are_as_in_torch(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check(function, *args, dynamic=True)
