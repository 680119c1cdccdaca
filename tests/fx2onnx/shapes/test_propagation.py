"""Sizes of results by rule, against those that torch gives."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import sympy
import torch
from modules import Of

from exportlab import to_onnx, verify
from fx2onnx.shapes.propagation import ShapePropagation


def test_a_test_is_tried_at_other_sizes_of_what_it_asks_for() -> None:
    example = dict(zip(sympy.symbols("a:8", integer=True, positive=True), range(2, 10), strict=True))
    first, second, *others = example
    tried = list(ShapePropagation(SimpleNamespace(example=example), [])._larger(first + second > 9))
    assert len(tried) == len({(at[first], at[second]) for at in tried}) == 16
    assert all(at[other] == example[other] for at in tried for other in others)


RANGES = {
    "of a little more than all runs tell": lambda x: torch.arange(0, x.shape[0] * 1.01),
    "of a fraction": lambda x: torch.arange(0, 1, 1 / x.shape[0]),
    "backwards": lambda x: torch.arange(1, 0, -1 / x.shape[0]),
    "from a half": lambda x: torch.arange(0.5, x.shape[0] * 1.01, 0.5),
    "of seven": lambda x: torch.arange(0, x.shape[0], x.shape[0] / 7),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_range_of_fractions_is_as_long_as_float64_makes_it(name: str) -> None:
    model = Of(lambda x: RANGES[name](x) + x.sum())
    program = to_onnx(model, (torch.rand(8, 2),), dynamic_shapes=({0: "n"},), capture="run")
    report = verify(program, model, [(torch.rand(n, 2),) for n in (8, 1, 5, 49, 98, 101, 250)])
    assert (report.outcome, program.report.limits) == ("ok", ()), report
