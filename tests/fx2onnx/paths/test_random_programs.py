"""Random programs over two moving sizes: what is captured by running is right at sizes that were never run, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_programs import SHAPES, STEPS, Random, what_is_wrong
from torch import Tensor, nn

from fx2onnx import ToOnnxError, to_onnx


@settings(deadline=None, max_examples=75, derandomize=True, database=None)
@given(st.lists(st.tuples(st.sampled_from(list(STEPS)), st.integers(1, 4)), min_size=1, max_size=4))
@example([("every k", 4), ("every k", 4), ("a turn for each row", 3)])  # one row up to sixteen
@example([("without the last", 1), ("scaled by a root of math", 4), ("padded", 3), ("a state carried", 3)])  # the root of -4 at no rows
def test_what_is_captured_is_right(steps: list[tuple[str, int]]) -> None:
    model, example = Random(steps), (torch.rand(5, 4), torch.rand(7, 4))
    try:
        program = to_onnx(model, example, dynamic_shapes=SHAPES, capture="run")
    except ToOnnxError:
        return
    assert what_is_wrong(program, model) == ""


class Doubled(nn.Module):
    """Doubles its rows where something is above 0."""

    def __init__(self, tested: Any) -> None:
        super().__init__()
        self.tested = tested

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * 2 if self.tested(x) > 0 else x


def the_other_side(model: Doubled) -> Any:
    """A wrong file: of the two sides of the test always the one that eager does not take."""
    return lambda x, y: [x if model.tested(x) > 0 else x * 2]


@pytest.mark.parametrize(
    ("tested", "is_wrong"),
    [(lambda x: x.sum(), True), (lambda x: x.sum() - (x * 3).sum() / 3, False), (lambda x: x[0, 0] - x[0, 0], True)],
    ids=["far from its threshold", "rounding alone", "equal in all roundings"],
)
def test_a_file_that_takes_the_other_side_is_wrong_unless_rounding_decides(tested: Any, is_wrong: bool) -> None:
    model = Doubled(tested)
    assert bool(what_is_wrong(the_other_side(model), model)) is is_wrong


class Forgetful(nn.Module):
    """Adds a large number and takes it away again, which costs most of the digits."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1e4) - 1e4


@pytest.mark.parametrize(("factor", "is_wrong"), [(1.0, False), (1.0003, False), (1.1, True)], ids=["exact", "as far as eager", "farther"])
def test_what_eager_has_lost_already_is_no_mistake_of_the_file(factor: float, is_wrong: bool) -> None:
    assert bool(what_is_wrong(lambda x, y: [x * factor], Forgetful())) is is_wrong
