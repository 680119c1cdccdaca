"""An op that the sample does not need, and that the file lacks: other values must show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mutant_models import Model, numbers
from torch import Tensor

from exportlab import verify
from exportlab.exporters import export
from exportlab.messages import muffled

POSITIVE, MIXED = numbers(4, 6).abs() + 0.1, numbers(4, 6)
SMALL = torch.tensor([[3, 5, 2], [7, 1, 4]])
KEPT = torch.ones(4, 6, dtype=torch.bool)

#: What the file computes, what the module does, and a call at which both are alike.
LOST: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Tensor, ...]]] = {
    "relu": (lambda x: x * 2, lambda x: x.relu() * 2, (POSITIVE,)),
    "abs": (lambda x: x.sqrt(), lambda x: x.abs().sqrt(), (POSITIVE,)),
    "clamp above": (lambda x: x + 1, lambda x: x.clamp(max=100) + 1, (MIXED,)),
    "clamp below": (lambda x: x + 1, lambda x: x.clamp(min=-100) + 1, (MIXED,)),
    "clamp of a divisor": (lambda x: x / x.norm(), lambda x: x / x.norm().clamp(min=1e-2), (MIXED,)),
    "epsilon of a divisor": (lambda x: x / x.abs().sum(), lambda x: x / (x.abs().sum() + 1e-6), (MIXED,)),
    "nan_to_num": (lambda x: x.cumsum(-1), lambda x: torch.nan_to_num(x, posinf=1.0, neginf=-1.0).cumsum(-1), (MIXED,)),
    "where of NaN": (lambda x: x.exp(), lambda x: torch.where(x.isnan(), 0.0, x).exp(), (MIXED,)),
    "where of infinity": (
        lambda x: x.tanh() * x,
        lambda x: torch.where(x.isinf(), 1.0, x).tanh() * torch.where(x.isinf(), 1.0, x),
        (MIXED,),
    ),
    "the largest taken off before exp": (
        lambda x: x.exp() / x.exp().sum(-1, keepdim=True),
        lambda x: (x - x.amax(-1, keepdim=True)).exp() / (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True),
        (MIXED,),
    ),
    "masked_fill": (lambda x, m: x.softmax(-1) + 0.0 * m, lambda x, m: x.masked_fill(~m, -1e9).softmax(-1) + 0.0 * m, (MIXED, KEPT)),
    "product with a mask": (lambda x, m: x + 0.0 * m, lambda x, m: x * m + 0.0 * m, (MIXED, KEPT)),
    "remainder": (lambda i: i + 1, lambda i: i % 50 + 1, (SMALL,)),
    "clamp of integers": (lambda i: i * 2, lambda i: i.clamp(max=90) * 2, (SMALL,)),
    "where of integers": (lambda i: i * 2, lambda i: torch.where(i == 0, -1, i * 2), (SMALL,)),
    "round": (lambda x: x * 3, lambda x: x.round() * 3, (MIXED.round(),)),
    "log1p for log": (lambda x: (x + 1).log(), lambda x: x.log1p(), (POSITIVE,)),
    "a rare threshold": (lambda x: x * 1.0, lambda x: torch.where((x.abs() > 6) & (x.abs() < 9), 0.0, x), (MIXED,)),
    "a narrow one": (lambda x: x * 1.0, lambda x: torch.where(x.abs() < 1e-5, 1.0, x), (MIXED,)),
}


@pytest.mark.parametrize("name", LOST)
def test_an_op_lost_is_seen_or_told(name: str) -> None:
    file, module, sample = LOST[name]
    with muffled():
        artifact = export("torchscript", Model(lambda _, *args: file(*args)), sample)
        report = verify(artifact, Model(lambda _, *args: module(*args)), [sample])
    told = "less exact for extreme values" if name == "log1p for log" else "no sample reaches"
    assert report.outcome == "wrong" or told in repr(report), repr(report)
