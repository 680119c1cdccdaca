"""A sigmoid is exact where what reads it needs small values: ONNX Runtime's own is 0 from -18 down."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from operators import check_both, check_further, named, nodes_of

LOW = torch.linspace(-86, 30, 59).reshape(1, -1)


def log_of_what_is_clamped(x: torch.Tensor) -> torch.Tensor:
    return torch.log(torch.sigmoid(x).reshape(-1).clamp(1e-30, 1))


def log_of_a_column(x: torch.Tensor) -> torch.Tensor:
    return (torch.sigmoid(x)[:, :9] + 1e-20).log2()


def divided_by(x: torch.Tensor) -> torch.Tensor:
    return 2 / torch.sigmoid(x)


def divisor(x: torch.Tensor) -> torch.Tensor:
    return x / torch.sigmoid(x)


def above_zero(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.sigmoid(x) > 0, x, 1)


def above_a_tensor(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) >= torch.full_like(x, 1e-12)


def power(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) ** 0.1


def expit(x: torch.Tensor) -> torch.Tensor:
    return torch.special.expit(x).log10()


def loss(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy(torch.sigmoid(x), torch.ones_like(x))


NEED_IT = [log_of_what_is_clamped, log_of_a_column, divided_by, divisor, above_zero, above_a_tensor, power, expit, loss]


@pytest.mark.parametrize("function", NEED_IT, ids=named)
def test_small_values_are_exact_where_they_are_read(function: Callable[..., torch.Tensor]) -> None:
    check_both(function, LOW)


@pytest.mark.parametrize(
    "function",
    [torch.sigmoid, lambda x: x * torch.sigmoid(x), lambda x: torch.sigmoid(x) > 0.5, lambda x: torch.sigmoid(x) / 2],
    ids=["returned", "a gate", "above a half", "divided"],
)
def test_elsewhere_it_is_one_node(function: Callable[..., torch.Tensor]) -> None:
    assert "Sigmoid" in nodes_of(function, LOW)
    check_both(function, LOW)


def test_half_precision_keeps_the_node_which_does_not_overflow() -> None:
    assert "Sigmoid" in nodes_of(lambda x: torch.sigmoid(x).log(), LOW.half())


def test_of_integers_all_digits_are_kept() -> None:
    whole = torch.arange(-30, -10)
    check_further(torch.sigmoid, (whole,), (whole,), ({},), rtol=1e-5, atol=0.0)
