"""Axes that agree in the example keep their names where all goes element by element, and are right where one of them broadcasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exportlab import to_onnx, verify
from fx2onnx.trace.refusal import TraceUnsupported

NAMES = ({0: "a"}, {0: "b"})
SIZES = ((7, 7), (5, 1), (1, 6), (1, 1), (0, 1), (1, 0), (100, 1))


class ComplexPair(nn.Module):
    """A function of two inputs and a weight."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: Tensor, y: Tensor) -> Any:
        return self.function(x, y, self.weight)


TAKEN = {
    "sum": lambda x, y, w: x + y,
    "both before it": lambda x, y, w: (-x).exp() + (-y).exp(),
    "one again": lambda x, y, w: ((x + y).tanh() * x - w, y * 2),
    "a comparison": lambda x, y, w: torch.maximum(x, y) > 0.5,
    "fewer axes": lambda x, y, w: x * 2 + w / (y + 4),
}
REFUSED = {
    "a sum of rows": lambda x, y, w: (x + y).sum(0),
    "a size": lambda x, y, w: (x + y) * x.shape[0],
    "a shape": lambda x, y, w: (x + y).reshape(x.shape[0], 3, 1),
    "side by side": lambda x, y, w: torch.cat([x, y], 1),
    "a test of a size": lambda x, y, w: x + y if x.shape[0] > 3 else x - y,
}


def pair(one: int, other: int) -> tuple[Tensor, Tensor]:
    return torch.rand(one, 3), torch.rand(other, 3)


@pytest.mark.parametrize("name", TAKEN)
def test_one_of_two_axes_may_broadcast(name: str) -> None:
    torch.manual_seed(0)
    model, example = ComplexPair(TAKEN[name]).eval(), pair(4, 4)
    program = to_onnx(model, example, dynamic_shapes=NAMES, capture="run")
    assert [str(value.shape[0]) for value in program.model.graph.inputs] == ["a", "b"]
    verify(program, model, [example, *(pair(*sizes) for sizes in SIZES)]).check()


@pytest.mark.parametrize("name", REFUSED)
def test_sizes_that_are_used_otherwise_are_refused(name: str) -> None:
    with pytest.raises(TraceUnsupported, match="must match"):
        to_onnx(ComplexPair(REFUSED[name]).eval(), pair(4, 4), dynamic_shapes=NAMES, capture="run")


def test_sizes_that_do_not_broadcast_are_an_error_of_the_file() -> None:
    program = to_onnx(ComplexPair(TAKEN["sum"]).eval(), pair(4, 4), dynamic_shapes=NAMES, capture="run")
    with pytest.raises(Exception, match=r"Add|broadcast"):
        program(*pair(3, 2))
