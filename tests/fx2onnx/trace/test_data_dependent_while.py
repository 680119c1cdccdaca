"""A `while` with the test of a value is one loop in the file, right for any number of turns; or it is refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from content import zoo
from exportlab import verify
from exportlab.outcomes import Outcome
from fx2onnx import to_onnx
from fx2onnx.trace.refusal import TraceUnsupported

SCALES = (0.0, 0.001, 0.1, 1, 10, 1000)  # from no turn to many


class Of(nn.Module):
    """A function of rows, with a layer that makes them smaller."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.layer = nn.Linear(3, 3, bias=False)
        self.number = 0

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def exported(function: Callable[..., Any], moves: bool = True) -> Any:
    """Export the function at four rows."""
    return to_onnx(Of(function).eval(), (torch.randn(4, 3),), dynamic_shapes=({0: "rows"},) if moves else None, capture="run")


def two_carried(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sum(0)
    while x.abs().sum() > 1:
        x = x * 0.7
        y = y + x.mean(0)
    return x, y + 1


def read_by_item(m: Any, x: Tensor) -> Tensor:
    while x.abs().sum().item() > 0.3:
        x = torch.tanh(x) * 0.9
    return x.sum(1)


def until_two_tests_end_it(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    turns = torch.zeros((), dtype=torch.int64)
    while (turns < 6) & (x.abs() > 0.5).any():
        x, turns = x / 2, turns + 1
    return x, turns


def until_one_of_several_ends_it(m: Any, x: Tensor) -> Tensor:
    goes_on = torch.stack([x.abs().sum() > 1, x.sum() > 0])
    while goes_on[0]:
        x = x / 2
        goes_on = torch.stack([x.abs().sum() > 1, x.sum() > 0])
    return x


def counted_in_a_tensor(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    turns = torch.zeros((), dtype=torch.int64)
    while (x.abs().sum() > 1).item():
        x, turns = x / 2, turns + 1
    return x, turns


def by_a_layer(m: Any, x: Tensor) -> Tensor:
    while x.abs().sum() > 1:
        x = m.layer(x) * 0.4
    return m.layer(x)


def beside_what_stays(m: Any, x: Tensor) -> Tensor:
    y = x
    while y.abs().sum() > x.shape[0]:
        y = y * 0.5 + x * 1e-6
    return y + x / x.shape[0]


def last_of_a_list(m: Any, x: Tensor) -> Tensor:
    made = [x]
    while made[-1].abs().sum() > 1:
        made.append(made[-1] / 2)
    return made[-1]


def called(m: Any, x: Tensor) -> Tensor:
    def halved(x: Tensor) -> Tensor:
        while x.abs().sum() > 1:
            x = x / 2
        return x

    return halved(x) * 2


def by_any(m: Any, x: Tensor) -> Tensor:
    while torch.any(x.abs() > 1):
        x = x / 2
    return x


def by_a_variable(m: Any, x: Tensor) -> Tensor:
    goes_on = x.abs().sum() > 1
    while goes_on:
        x = x / 2
        goes_on = x.abs().sum() > 1
    return x


def made_by_the_last_turn(m: Any, x: Tensor) -> Tensor:
    y = x * 0
    while x.abs().sum() > 1:
        y, x = x * 3, x / 2
    return y + x


def of_two_turns_before(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x, x * 2
    while a.abs().sum() > 1:
        a, b = b / 4, a
    return a, b


def in_place(m: Any, x: Tensor) -> Tensor:
    x = x.clone()
    while x.abs().sum() > 1:
        x.div_(2)
    return x


def value_tested_inside(m: Any, x: Tensor) -> Tensor:
    while x.abs().sum() > 1:
        x = x / 2 if x.sum() > 0 else x / 3
    return x


def two_of_them(m: Any, x: Tensor) -> Tensor:
    while x.abs().sum() > 4:
        x = x / 2
    while x.abs().sum() > 1:
        x = x * 0.9
    return x


TAKEN = (
    *(two_carried, read_by_item, counted_in_a_tensor, by_a_layer, beside_what_stays, last_of_a_list, called, by_any, by_a_variable),
    *(until_two_tests_end_it, until_one_of_several_ends_it),
    *(made_by_the_last_turn, of_two_turns_before, in_place, value_tested_inside, two_of_them),
)


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("function", TAKEN)
def test_it_is_right_for_any_number_of_turns(function: Callable[..., Any], moves: bool) -> None:
    program, model = exported(function, moves), Of(function).eval()
    assert [node.op_type for node in program.model.graph].count("Loop") == (2 if function is two_of_them else 1)
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    for rows in (4, 7, 1, 2) if moves else (4,):
        for scale in SCALES:
            x = torch.randn(rows, 3) * scale
            for found, wanted in zip(session.run(None, {"x": x.numpy()}), pytree.tree_leaves(model(x)), strict=True):
                torch.testing.assert_close(torch.as_tensor(found), wanted.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("moves", [True, False])
def test_the_case_of_the_zoo_is_right(moves: bool) -> None:
    case = zoo.get("python_while_on_value").build()
    first = case.samples[0]
    program = to_onnx(case.module, first.args, dynamic_shapes=case.dynamic_shapes if moves else None)
    assert verify(program, case.module, case.samples if moves else [first]).outcome is Outcome.OK


def something_else_without_a_turn(m: Any, x: Tensor) -> Tensor:
    y = x * 100
    while x.abs().sum() > 1:
        x = x / 2
        y = x
    return y


def counter(m: Any, x: Tensor) -> Tensor:
    turns = 0
    while x.abs().sum() > 1:
        x, turns = x / 2, turns + 1
    return x + turns


def counter_of_the_module(m: Any, x: Tensor) -> Tensor:
    m.number = 0
    while x.abs().sum() > 1:
        x = x * (0.5 if m.number < 100 else 0.1)
        m.number += 1
    return x


def iterator(m: Any, x: Tensor) -> Tensor:
    factors = iter([0.5] * 20 + [0.1] * 200)
    while x.abs().sum() > 1:
        x = x * next(factors)
    return x


def all_of_a_list(m: Any, x: Tensor) -> Tensor:
    made = [x]
    while made[-1].abs().sum() > 1:
        made.append(made[-1] / 2)
    return torch.stack(made).sum(0)


def smaller(m: Any, x: Tensor) -> Tensor:
    while x.abs().sum() > 1:
        x = x[:1] * 0.5
    return x


def a_number(m: Any, x: Tensor) -> Tensor:
    left = x.abs().sum().long()
    while left.sum():
        left, x = left // 2, x / 2
    return x


REFUSED = {
    something_else_without_a_turn: "`x` and `y` hold the same tensor where it is read, but not always",
    counter: "`turns` is a Python number that changes in each iteration of a while loop",
    counter_of_the_module: r"`m\.number` is a Python number that changes in each iteration of a while loop",
    iterator: "the iterator `factors` may advance in each iteration",
    all_of_a_list: "cannot be exported as a Loop",
    smaller: "cannot be exported as a Loop",
    a_number: "its condition is a number",
}


@pytest.mark.parametrize("function", REFUSED)
def test_what_cannot_be_proven_is_refused_with_the_reason(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceUnsupported, match=REFUSED[function]) as caught:
        exported(function)
    assert f"in {function.__name__}" in str(caught.value)


def with_a_limit_of_its_own(m: Any, x: Tensor) -> Tensor:
    turns = 0
    while x.abs().sum() > 1 and turns < 3:
        x, turns = x / 2, turns + 1
    return x


def left_early(m: Any, x: Tensor) -> Tensor:
    turns = 0
    while x.abs().sum() > 1:
        x, turns = x / 2, turns + 1
        if turns == 3:
            break
    return x


@pytest.mark.parametrize("function", [with_a_limit_of_its_own, left_early])
def test_one_that_something_else_ends_is_written_turn_by_turn(function: Callable[..., Any]) -> None:
    program, model = exported(function), Of(function).eval()
    assert not any(node.op_type == "Loop" for node in program.model.graph.all_nodes())
    verify(program, model, [(torch.randn(4, 3) * scale,) for scale in SCALES]).check()
