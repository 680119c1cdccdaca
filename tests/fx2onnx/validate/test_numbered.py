"""A program that was captured by running is called by torch with numbers for its sizes, or says what it was exported for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modules import Of

from fx2onnx.ir.captured_program import RunProgram
from fx2onnx.paths.explore import capture_by_running
from fx2onnx.validate.numbered import specialise_program


@pytest.fixture
def program() -> RunProgram:
    captured: Any = capture_by_running(Of(lambda x: x * x.shape[0]).eval(), (torch.rand(2, 4),), {}, ({0: "rows"},)).program
    assert isinstance(captured, RunProgram)
    return captured


def test_it_is_right_at_the_sizes_given(program: RunProgram) -> None:
    given = torch.rand(7, 4)
    (found,) = specialise_program(program, [given]).graph_module(given)
    torch.testing.assert_close(found, given * 7)


@pytest.mark.parametrize(
    ("given", "said"), [(torch.rand(4), "2 axes was exported, but the argument has 1"), (2.0, "exported, but the argument is a float")]
)
def test_what_is_no_such_tensor_is_refused(program: RunProgram, given: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        specialise_program(program, [given])


def test_a_test_of_a_size_is_answered_for_the_sizes_given() -> None:
    def either(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 4 else x * 3

    captured: Any = capture_by_running(Of(either).eval(), (torch.rand(2, 4),), {}, ({0: "rows"},)).program
    for rows in (3, 7):
        given = torch.rand(rows, 4)
        (found,) = specialise_program(captured, [given]).graph_module(given)
        torch.testing.assert_close(found, either(given))
