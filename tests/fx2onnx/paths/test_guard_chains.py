"""A loop that tests a moving size in each turn has more sides than a file: that is said before all of them are captured."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from modules import Of
from torch import Tensor
from torch.nn.functional import pad

from exportlab import verify
from exportlab.outcomes import Outcome
from fx2onnx import to_onnx
from fx2onnx.errors import FrozenDimension

STEPS = ({1: "steps"},)
SIZES = (1, 2, 3, 5, 7, 16, 17, 31)


def shifted(x: Tensor, by: int) -> Tensor:
    return pad(x, (0, 0, by, 0))[:, : x.shape[1]]


def doubling(x: Tensor) -> Tensor:
    by = 1
    while by < x.shape[1]:
        x = x + pad(x[:, :-by], (0, 0, by, 0))
        by *= 2
    return x


def halving(x: Tensor) -> Tensor:
    left = x.shape[1]
    while left > 1:
        x = x * 0.5
        left //= 2
    return x


def by_ones(x: Tensor) -> Tensor:
    at = 0
    while at < x.shape[1]:
        x = x + x[:, at : at + 1]
        at += 1
    return x


def buckets(x: Tensor) -> Tensor:
    for limit in (4, 8, 16, 24, 32):
        if x.shape[1] <= limit:
            return x * limit
    return x


def fixed_turns(x: Tensor) -> Tensor:
    for power in range(6):
        x = x + shifted(x, 2**power)
    return x


@pytest.mark.parametrize("forward", [doubling, halving, by_ones], ids=lambda forward: forward.__name__)
def test_a_loop_that_tests_a_size_in_each_turn_is_refused_by_its_line_after_few_runs(forward: Callable[[Tensor], Tensor]) -> None:
    calls = 0

    def counted(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return forward(x)

    with pytest.raises(
        FrozenDimension, match=rf"the test at \S*test_guard_chains\.py:\d+ in {forward.__name__} is evaluated in each iteration of a loop"
    ):
        to_onnx(Of(counted), (torch.randn(2, 9, 3),), dynamic_shapes=STEPS)
    assert calls < 50


@pytest.mark.parametrize("forward", [buckets, fixed_turns], ids=lambda forward: forward.__name__)
def test_a_few_tests_of_a_line_are_taken_and_a_fixed_number_of_turns_is_what_the_advice_says(forward: Callable[[Tensor], Tensor]) -> None:
    inputs = [(torch.randn(2, size, 3),) for size in SIZES]
    program = to_onnx(Of(forward), inputs[3], dynamic_shapes=STEPS)
    assert verify(program, Of(forward), inputs).outcome is Outcome.OK
    if forward is fixed_turns:
        assert all(torch.allclose(forward(x), doubling(x)) for (x,) in inputs)


def test_a_function_that_calls_itself_on_both_halves_is_refused_near_the_example() -> None:
    most = 0

    def halves(x: Tensor) -> Tensor:
        nonlocal most
        most = max(most, x.shape[0].node.hint if isinstance(x.shape[0], torch.SymInt) else x.shape[0])
        if x.shape[0] == 1:
            return x[0]
        middle = x.shape[0] // 2
        return halves(x[:middle]) - 0.5 * halves(x[middle:])

    with pytest.raises(FrozenDimension, match=r"the test at \S*test_guard_chains\.py:\d+ in halves"):
        to_onnx(Of(halves), (torch.randn(4, 3),), dynamic_shapes=({0: "rows"},))
    assert most < 100
