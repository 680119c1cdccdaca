"""Which translation an operator gets: an in-place form gets that of the function whose result it writes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from inputs import WHOLE
from operators import check, check_both

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
