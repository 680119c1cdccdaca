"""Check whether two runs without values make the same calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, zip_longest
from typing import Any

import torch
from torch import nn

from ..compat import trees as pytree
from ..compat.fake_tensors import FakeTensor, unset_fake_temporarily
from ..trace.compute_budget import Call, ComputeBudget
from ..trace.events import alike, equal, unflatten_arguments
from ..trace.run import trace
from .replay import REFUSED, equal_leaves

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
COPIES = {
    torch.ops.aten.clone.default,
    torch.ops.aten.contiguous.default,
    torch.ops.aten.alias.default,
    torch.ops.aten.detach.default,
}
UNKNOWN = -1  # for a tensor without values that no recorded call created


class RecordedFunction(nn.Module):
    """Wraps a function in a module that stores its results."""

    def __init__(self, model: nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.function = model, function
        self.results: list[Any] = []

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        returned = self.function(*args, **kwargs)
        self.results = pytree.tree_leaves(returned)
        return returned


def same_calls(work: ComputeBudget, model: nn.Module, function: Callable[..., Any], given: Arguments, own: Arguments) -> bool:
    """Return whether a function makes the same calls on tensors without values as the model, and returns the same."""
    one, other = RecordedFunction(model, model), RecordedFunction(model, function)
    with work.noting() as calls:
        trace(one, given)
    with work.noting() as others:
        trace(other, own)
    makers, other_makers = _makers(calls), _makers(others)
    pairs = zip_longest(*(filter(_computes, noted) for noted in (calls, others)))
    if not all(first and second and _same_call(first, second, makers, other_makers) for first, second in pairs):
        return False
    returned = zip_longest(one.results, other.results)
    return all(_same(_leaf(first, makers), _leaf(second, other_makers)) for first, second in returned)


def _computes(call: Call) -> bool:
    return call.func not in COPIES and call.result is not call.leaves[0]


def _makers(calls: list[Call]) -> dict[int, int]:
    """Return the number of the call that created each tensor without values, by its id; a copy has that of its source."""
    makers: dict[int, int] = {}
    numbers = count()
    for call in calls:
        if _computes(call):
            tensors = (leaf for leaf in pytree.tree_leaves(call.result) if isinstance(leaf, torch.Tensor))
            makers.update((id(leaf), next(numbers)) for leaf in tensors)
        else:
            makers[id(call.result)] = makers.get(id(call.leaves[0]), UNKNOWN)
    return makers


def _same_call(one: Call, other: Call, makers: dict[int, int], other_makers: dict[int, int]) -> bool:
    """Return whether two calls have equal results. If only constants differ, such as `is_causal` for one position, both are run."""
    pairs = list(zip_longest(_tensors(one), _tensors(other)))
    if one.func is not other.func or not all(_same(_leaf(first, makers), _leaf(second, other_makers)) for first, second in pairs):
        return False
    return (one.spec == other.spec and all(map(_is_constant_alike, one.leaves, other.leaves))) or _give_the_same(one, other)


def _tensors(call: Call) -> list[torch.Tensor]:
    return [leaf for leaf in call.leaves if isinstance(leaf, torch.Tensor)]


def _is_constant_alike(one: Any, other: Any) -> bool:
    return isinstance(one, torch.Tensor) == isinstance(other, torch.Tensor) and (isinstance(one, torch.Tensor) or alike(one, other))


def _give_the_same(one: Call, other: Call) -> bool:
    values = [_fill_with_random(leaf) for leaf in _tensors(one)]
    try:
        first, second = (pytree.tree_leaves(_replay_call(call, iter(values))) for call in (one, other))
    except REFUSED:
        return False
    return equal_leaves(first, second)


def _fill_with_random(leaf: Any) -> Any:
    if not isinstance(leaf, FakeTensor):
        return leaf
    with unset_fake_temporarily():
        generator = torch.Generator().manual_seed(leaf.dim())
        return torch.randn(leaf.shape, generator=generator).to(leaf.dtype)


def _replay_call(call: Call, tensors: Iterator[torch.Tensor]) -> Any:
    args, kwargs = unflatten_arguments([next(tensors) if isinstance(leaf, torch.Tensor) else leaf for leaf in call.leaves], call.spec)
    with torch.no_grad():
        return call.func(*args, **kwargs)


def _leaf(leaf: Any, makers: dict[int, int]) -> Any:
    return ("made by", makers.get(id(leaf), UNKNOWN), tuple(leaf.shape)) if isinstance(leaf, FakeTensor) else leaf


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _is_view_alike(one, other) or equal(one, other)
    return alike(one, other) and not (isinstance(one, tuple) and UNKNOWN in one)


def _is_view_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.data_ptr() == other.data_ptr() and one.shape == other.shape and one.stride() == other.stride() and one.dtype == other.dtype
