"""Types that eager refuses and torch.export takes: no file is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fx2onnx import to_onnx
from fx2onnx.errors import CaptureError

WHOLE, LONG, DOUBLE = torch.int64, torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.float64)
X, W = torch.ones(2, 3), torch.ones(3, 2)
PLACES = torch.tensor([0, 1])
Function = Callable[..., torch.Tensor]


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)  # here


class InBranch(nn.Module):
    """Mixes types where x is positive."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: (x @ W.long()).float(), lambda x: x @ W, (x,))


REFUSED: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "linear": (lambda x: F.linear(x, W.T), (LONG,)),
    "linear of batches": (lambda x: F.linear(x, W.T), (LONG[None],)),
    "linear in double": (lambda x: F.linear(x, W.T), (DOUBLE,)),
    "mm": (torch.mm, (LONG, W)),
    "matmul": (torch.matmul, (DOUBLE, W)),
    "mv": (torch.mv, (X, LONG[0])),
    "addmm": (torch.addmm, (LONG[:, :2], X, W)),
    "index_select": (lambda x, i: x.index_select(0, i), (X, X[0])),
    "index_add": (lambda x, s: x.index_add(0, PLACES, s), (X, LONG)),
    "index_put": (lambda x, s: x.index_put((PLACES,), s), (X, LONG)),
    "layer_norm": (lambda x: F.layer_norm(x, (3,), X[0]), (DOUBLE,)),
    "conv1d": (lambda x: F.conv1d(x, torch.ones(1, 1, 2)), (LONG[:, None],)),
    "cross": (torch.linalg.cross, (X, LONG)),
    "gelu": (F.gelu, (LONG,)),
    "var": (torch.var, (LONG,)),
}
BY_TORCH = {
    "bmm": (torch.bmm, (LONG[None], W[None])),
    "baddbmm": (torch.baddbmm, (X[None, :, :2], LONG[None], W[None])),
    "embedding": (lambda i: F.embedding(i, W), (X[0],)),
    "gather": (lambda x, i: x.gather(0, i), (X, X)),
}
TAKEN: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "add": (torch.add, (LONG, X)),
    "mm of integers": (torch.mm, (LONG, LONG.T)),
    "embedding": (lambda i: F.embedding(i, W), (PLACES,)),
    "where": (torch.where, (LONG > 0, LONG, X)),
    "cat": (lambda a, b: torch.cat([a, b]), (LONG, X)),
    "mask of an attention": (lambda x, m: F.scaled_dot_product_attention(x, x, x, m), (X[None], torch.ones(2, 2, dtype=torch.bool))),
    "scatter": (lambda x: torch.zeros(3).scatter(0, x, 1.0), (torch.tensor([2]),)),
}


@pytest.mark.parametrize(("function", "given"), REFUSED.values(), ids=REFUSED)
def test_types_that_eager_refuses_are_refused(function: Function, given: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)) as eager:
        function(*given)
    with pytest.raises(CaptureError) as refused:
        to_onnx(Calls(function), given)
    assert str(eager.value).split("\n")[0] in str(refused.value)


@pytest.mark.parametrize(("function", "given"), BY_TORCH.values(), ids=BY_TORCH)
def test_what_the_capture_refuses_by_itself(function: Function, given: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        function(*given)
    with pytest.raises(CaptureError, match=r"^torch\.export cannot capture the model"):
        to_onnx(Calls(function), given)


@pytest.mark.parametrize(("function", "given"), TAKEN.values(), ids=TAKEN)
def test_types_that_eager_takes_are_taken(function: Function, given: tuple[torch.Tensor, ...]) -> None:
    function(*given)
    to_onnx(Calls(function), given)


def test_it_says_where_the_model_does_that_and_in_whose_words() -> None:
    with pytest.raises(CaptureError) as refused:
        to_onnx(nn.Sequential(nn.Linear(3, 2)), (LONG,))
    assert str(refused.value) == (
        "eager PyTorch rejects the dtypes of aten.linear.default at module 0 (Linear): mat1 and mat2 must have the same dtype, but got "
        "Long and Float: call the model before the export, and pass dtypes that it accepts"
    )
    with pytest.raises(CaptureError, match=r"aten\.mm\.default at .*test_dtype_check\.py:\d+ in forward: expected m1 and m2"):
        to_onnx(Calls(torch.mm), (LONG, W))


def test_a_branch_that_is_not_taken_is_looked_at_too() -> None:
    with pytest.raises(CaptureError, match=r"eager PyTorch rejects the dtypes of aten\.matmul"):
        to_onnx(InBranch(), (-X,))


def test_axes_that_move_have_the_size_of_the_example() -> None:
    moving: Any = ({0: torch.export.Dim.DYNAMIC},)
    with pytest.raises(CaptureError, match="must have the same dtype, but got Long and Float"):
        to_onnx(nn.Sequential(nn.Linear(3, 2)), (LONG,), dynamic_shapes=moving)


def test_no_random_number_is_drawn() -> None:
    state = torch.get_rng_state()
    to_onnx(Calls(lambda p: torch.randint_like(p, 5)), (PLACES,))
    assert torch.equal(torch.get_rng_state(), state)
