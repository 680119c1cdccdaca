"""What `torch.tensor` makes is the model's own in each call: it may be written into, also through views, and what others hold may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fx2onnx import to_onnx
from fx2onnx.errors import ToOnnxError

GLOBAL = torch.tensor([1.0, 2.0, 3.0])


class Of(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def element(x: Tensor) -> Tensor:
    """Write an element."""
    made = torch.tensor([1.0, 0.0, -1.0])
    made[0] = 2.0
    return x * made


def all_elements(x: Tensor) -> Tensor:
    """Write all elements of what is made of a list."""
    return x * torch.as_tensor([1.0, 2.0, 3.0]).mul_(2)


def through_views(x: Tensor) -> tuple[Tensor, Tensor]:
    """Write by a view of it, and then itself."""
    made = torch.tensor([1.0, 0.0, -1.0])
    shown = made[1:]
    shown.add_(1)
    made[1] = x[0, 0]
    return x * made, shown


def transposed(x: Tensor) -> Tensor:
    """Write by a view of a view."""
    made = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    made.t()[0].unsqueeze(0).zero_()
    return x @ made.t()


def each_time(x: Tensor) -> Tensor:
    """Make the same twice, and write into one of them."""
    first, other = (torch.tensor([1.0, 2.0, 3.0]) for _ in range(2))
    first[:2] += 1
    return x * first - other


def by_parts(x: Tensor) -> Tensor:
    """Write into one of its parts."""
    made = torch.tensor([1.0, 2.0, 3.0])
    made.unbind()[1].mul_(5)
    return x * made


@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("function", [element, all_elements, through_views, transposed, each_time, by_parts])
def test_what_a_call_makes_may_be_written(function: Callable[[Tensor], Any], capture: str) -> None:
    program = to_onnx(Of(function), (torch.randn(2, 3),), dynamic_shapes=({0: "rows"},), capture=capture)
    for rows in (2, 5, 2):
        x = torch.randn(rows, 3)
        expected = function(x)
        for actual, wanted in zip(program(x), expected if isinstance(expected, tuple) else (expected,), strict=True):
            torch.testing.assert_close(actual, wanted)


@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("shown", [lambda: GLOBAL, lambda: GLOBAL.detach(), lambda: GLOBAL[:3]])
def test_what_others_hold_may_not_be_written(shown: Callable[[], Tensor], capture: str) -> None:
    with pytest.raises(ToOnnxError, match=r"changes lifted_tensor_0|writes into a constant"):
        to_onnx(Of(lambda x: x * shown().mul_(1.0)), (torch.randn(2, 3),), capture=capture)
