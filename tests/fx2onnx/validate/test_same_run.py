"""A run at other sizes is held against the run with symbols afterwards: calls, constants, sizes and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from modules import Of

from fx2onnx.trace.events import Ref, TensorMeta, Trace
from fx2onnx.trace.run import trace
from fx2onnx.validate.same_run import is_at, is_at_without_views

N = sympy.Symbol("n", integer=True, positive=True)
LARGEST = 3  # the size of the run that has symbols for it


def _known(found: Trace) -> dict[Ref, Any]:
    """The sizes of all results, with a symbol for the size that moves."""
    made = ((Ref("row", number, part), one) for number, row in enumerate(found.rows) for part, one in enumerate(row.made))
    return {ref: tuple(N if size == LARGEST else size for size in one.shape) for ref, one in made if isinstance(one, TensorMeta)}


def _is_at(function: Callable[[torch.Tensor], Any], other: Callable[[torch.Tensor], Any], size: int = 5, told: int = 5) -> bool:
    one, two = (trace(Of(f), ((torch.ones(n, 2),), {})) for f, n in ((function, LARGEST), (other, size)))
    return is_at(one, _known(one), two, {N: told})


def test_the_same_calls_at_other_sizes_are_the_same_run() -> None:
    assert _is_at(lambda x: (x * 2).sum(1), lambda x: (x * 2).sum(1))


DIFFERENT: dict[str, Callable[[torch.Tensor], Any]] = {
    "another operator": lambda x: (x + 2).sum(1),
    "another constant": lambda x: (x * 3).sum(1),
    "another axis": lambda x: (x * 2).sum(0),
    "another tensor": lambda x: (x * 2, x.sum(1))[1],
    "a further call": lambda x: (x * 2).sum(1).relu(),
    "another result": lambda x: [(x * 2), (x * 2).sum(1)][0],
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_seen(name: str) -> None:
    assert not _is_at(lambda x: (x * 2).sum(1), DIFFERENT[name])


def test_a_size_that_the_expression_does_not_give_is_seen() -> None:
    assert not _is_at(lambda x: (x * 2).sum(1), lambda x: (x * 2).sum(1), size=5, told=6)


def test_another_constant_tensor_is_seen() -> None:
    assert not _is_at(lambda x: x + torch.tensor([1.0, 2.0]), lambda x: x + torch.tensor([1.0, 3.0]))


def test_a_write_into_memory_that_is_shared_at_some_sizes_is_seen() -> None:
    def written(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        (y.reshape(-1) if len(x) == LARGEST else y.t().reshape(-1)[: y.numel()].view(-1)).mul_(2)
        return y

    assert not _is_at(written, written)


def _is_without_views(
    at_some: Callable[[torch.Tensor], torch.Tensor], size: int = 1, rest: Callable[[torch.Tensor], Any] = torch.sin
) -> bool:
    """Whether a run that makes this call at the largest size alone is held to be the same."""

    def function(x: torch.Tensor) -> Any:
        y = x * 2
        return rest(at_some(y) if len(x) == LARGEST else y) + y.sum()

    one, two = (trace(Of(function), ((torch.ones(n, 2),), {})) for n in (LARGEST, size))
    return is_at_without_views(one, _known(one), two, {N: size})


@pytest.mark.parametrize(
    "call",
    [lambda y: y.expand(*y.shape), lambda y: y.view(y.shape), lambda y: y[0 : y.shape[0]], lambda y: y.view(y.shape).expand(*y.shape)],
    ids=["expand", "view", "slice", "two"],
)
def test_a_view_that_returns_its_input_may_be_absent(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert _is_without_views(call)


@pytest.mark.parametrize(
    "call",
    [
        lambda y: y.expand(2, *y.shape)[0],
        lambda y: y.relu(),
        lambda y: y.flip(0).view(y.shape),
        lambda y: y.mul_(1),
        lambda y: y.contiguous(memory_format=torch.preserve_format).view(y.shape) + 0,
    ],
    ids=["two views", "values", "flip and view", "write", "addition"],
)
def test_another_call_may_not_be_absent(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert not _is_without_views(call)


def test_what_follows_an_absent_view_is_compared() -> None:
    assert not _is_without_views(lambda y: y.view(y.shape), rest=lambda y: y.sin() if len(y) == LARGEST else y.cos())


def test_a_view_with_other_sizes_may_not_be_absent() -> None:
    assert _is_without_views(lambda y: y[:1].expand(3, 2), size=1)
    assert not _is_without_views(lambda y: y[:1].expand(3, 2), size=2)


def test_a_run_that_leaves_out_no_view_is_not_held_to_be_the_same() -> None:
    assert not _is_without_views(lambda y: y, size=2)
