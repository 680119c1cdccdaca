"""Limit the multiplications of the runs of a capture. Beyond the limit, runs continue without values, on metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple, NoReturn

import torch

from ..compat.fake_tensors import DirectKernelMode, FakeTensor, FakeTensorMode
from .events import Spec, unflatten_arguments
from .fake_layouts import layout_of_result
from .refusal import NeedsRealValues

aten = torch.ops.aten
MAX_FLOPS = 500_000_000  # multiplications in all runs of a capture: some hundredths of a second on one core
CHEAP = 5_000_000  # multiplications of a call that take less time than the same call without values
LARGE_INPUT = 1_000_000  # elements of an argument, such as the cache of a speech model, which each run creates again
LARGE = 16_000_000  # elements of a result, such as a mask of 4,000 by 4,000 positions, which a run keeps until it ends
BUDGET: ContextVar[ComputeBudget | None] = ContextVar("work", default=None)


class Call(NamedTuple):
    """A call of an operator on tensors, some without values, and its result."""

    func: Any
    leaves: list[Any]
    spec: Spec
    result: Any


class ComputeBudget:
    """The multiplications left to the runs of a capture, or a mode in which layers that multiply return tensors without values.

    Args:
        left: how many multiplications are left; None for runs without values.
    """

    def __init__(self, left: int | None) -> None:
        self._left = left
        self._copies: dict[int, tuple[torch.Tensor, FakeTensor]] = {}
        self._calls: list[Call] | None = None

    @cached_property
    def _mode(self) -> FakeTensorMode:
        return DirectKernelMode()

    @property
    def has_values(self) -> bool:
        """Whether all tensors have values."""
        return self._left is not None

    def done(self, products: int) -> None:
        """Subtract the multiplications of the next call beyond those of a cheap one.

        Raises:
            NeedsRealValues: If the budget is exhausted.
        """
        if self._left is not None:
            self._left -= max(0, products - CHEAP)
            if self._left < 0:
                raise NeedsRealValues(f"the runs need more than {MAX_FLOPS:,} multiplications")

    def check_inputs(self, elements: Iterable[int]) -> None:
        """Raise NeedsRealValues if the arguments of a run are too large together."""
        if sum(elements) > LARGE:
            raise NeedsRealValues(f"the arguments of a run have more than {LARGE:,} elements")

    def leaves_out_input(self, tensor: torch.Tensor, elements: int) -> bool:
        """Return whether a run without values drops those of this argument."""
        return not self.has_values and elements > LARGE_INPUT and tensor.is_floating_point() and tensor.layout is torch.strided

    def will_be_large(self, func: Any, leaves: Sequence[Any]) -> bool:
        """Return whether the result of an elementwise call would be too large."""
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if not tensors or not (torch.Tag.pointwise in func.tags or func in BY_ELEMENT):
            return False
        axes = zip_longest(*(reversed(tensor.shape) for tensor in tensors), fillvalue=1)
        return prod(map(max, axes)) > LARGE

    def is_large(self, func: Any, result: Any) -> bool:
        """Return whether the result of a call is too large to keep. A possible view of another tensor never is."""
        if isinstance(result, torch.Tensor):
            return result.numel() > LARGE and func._schema.returns[0].alias_info is None
        return isinstance(result, (tuple, list)) and any(self.is_large(func, part) for part in result)

    def refuse_large(self) -> NoReturn:
        """Raise NeedsRealValues because a run creates a large tensor."""
        raise NeedsRealValues(f"a run creates a tensor of more than {LARGE:,} elements")

    def leaves_out(self, func: Any, leaves: list[Any]) -> bool:
        """Return whether the results of this call have no values in a run without values."""
        return func in PRODUCTS or any(isinstance(leaf, FakeTensor) for leaf in leaves) or self.will_be_large(func, leaves)

    def copy_of(self, tensor: torch.Tensor) -> FakeTensor:
        """Return a tensor without values, with the size and layout of this one and separate memory."""
        known = self._copies.get(id(tensor))
        if known is None:
            known = self._copies[id(tensor)] = tensor, self._empty(tensor)
        return known[1]

    def like(self, result: Any) -> Any:
        """Return a tensor without values that has the layout of a result; return a number unchanged."""
        return self._make_result(_layout(result), result.device, [result]) if isinstance(result, torch.Tensor) else result

    def empty(self, like: torch.Tensor, shape: Sequence[int]) -> FakeTensor:
        """Return a tensor of this shape without values, with its axes in memory in the order of `like`."""
        strides = like.stride()
        order = sorted(range(like.dim()), key=lambda axis: (-strides[axis], axis))
        meta = torch.empty_permuted(shape, order, dtype=like.dtype, device="meta")
        return FakeTensor(self._mode, meta, like.device)

    @contextmanager
    def building(self) -> Iterator[None]:
        """Let containers of arguments, such as caches, mix tensors with and without values while they are created."""
        if self.has_values:
            yield
            return
        self._mode.allow_non_fake_inputs = True
        try:
            yield
        finally:
            self._mode.allow_non_fake_inputs = False

    @contextmanager
    def noting(self) -> Iterator[list[Call]]:
        """Record the calls on tensors without values."""
        calls: list[Call] = []
        self._calls = calls
        try:
            yield calls
        finally:
            self._calls = None

    def record_call(self, func: Any, leaves: list[Any], spec: Spec, result: Any) -> Any:
        """Record a call with its original arguments, and return its result."""
        if self._calls is not None:
            self._calls.append(Call(func, leaves, spec, result))
        return result

    def _empty(self, like: torch.Tensor) -> FakeTensor:
        return FakeTensor(self._mode, _layout(like).requires_grad_(like.requires_grad), like.device)

    def _make_result(self, layout: torch.Tensor, device: torch.device, operands: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return a tensor in this layout, which requires a gradient if an operand does, and can be written as any result can."""
        result = FakeTensor(self._mode, layout, device)
        if not torch.is_grad_enabled():
            return result
        differentiable = next((operand for operand in operands if operand.requires_grad), None)
        made: torch.Tensor = result if differentiable is None else _WithGradient.apply(result, differentiable)  # type: ignore[no-untyped-call]
        return made

    def call_fake(self, func: Any, leaves: list[Any], spec: Spec) -> Any:
        """Call an operator on tensors without values."""
        args, kwargs = unflatten_arguments(leaves, spec)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        layout = layout_of_result(func, leaves, args, kwargs)
        if layout is not None:
            return self._make_result(layout, tensors[0].device, tensors)
        with self._mode:
            return func(*args, **kwargs)


class _WithGradient(torch.autograd.Function):
    """Marks a new tensor as computed from one that requires a gradient."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        """Return the new tensor."""
        ctx.mark_dirty(result)
        return result

    @staticmethod
    def backward(ctx: Any, *_: Any) -> NoReturn:
        """Raise NeedsRealValues."""
        raise NeedsRealValues("the model computes a gradient")


def _layout(like: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta")


@contextmanager
def runs_of(left: int | None) -> Iterator[None]:
    """Limit the multiplications of the runs of a capture; None makes them run without values."""
    token = BUDGET.set(ComputeBudget(left))
    try:
        yield
    finally:
        BUDGET.reset(token)


def flops_of(func: Any, args: tuple[Any, ...]) -> int:
    """Return the approximate multiplications of a linear layer, convolution or attention; 0 for other operators."""
    counted = PRODUCTS.get(func)
    return counted(*args) if counted is not None else 0


def _count_linear_flops(x: torch.Tensor, weight: torch.Tensor, *_: Any) -> int:
    return x.numel() * (weight.shape[0] if weight.dim() > 1 else 1)


def _count_matmul_flops(a: torch.Tensor, b: torch.Tensor, *_: Any) -> int:
    return a.numel() * (b.shape[-1] if b.dim() > 1 else 1)


def _count_addmm_flops(_: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *__: Any) -> int:
    return _count_matmul_flops(a, b)


def _count_convolution_flops(x: torch.Tensor, weight: torch.Tensor, bias: Any = None, stride: Any = 1, *_: Any) -> int:
    """Each weight counts once per window, and there are about as many windows as positions divided by the strides."""
    axes = weight.dim() - 2
    strides = [stride] * axes if isinstance(stride, int) else [*stride] * (axes // len(stride))
    windows = prod(x.shape[-axes:]) // prod(strides) * (x.shape[0] if x.dim() == weight.dim() else 1)
    return windows * weight.numel()


def _count_attention_flops(query: torch.Tensor, key: torch.Tensor, *_: Any) -> int:
    return 2 * query.numel() * key.shape[-2]


BY_ELEMENT = (
    *(aten.__and__.Tensor, aten.__or__.Tensor, aten.masked_fill.Tensor, aten.where.ScalarOther, aten.where.ScalarSelf),
)  # torch does not tag these as pointwise
PRODUCTS: Mapping[Any, Callable[..., int]] = {
    aten.linear.default: _count_linear_flops,
    **dict.fromkeys((aten.matmul.default, aten.mm.default, aten.bmm.default), _count_matmul_flops),
    **dict.fromkeys((aten.addmm.default, aten.baddbmm.default), _count_addmm_flops),
    **dict.fromkeys((aten.conv1d.default, aten.conv2d.default, aten.conv3d.default), _count_convolution_flops),
    **dict.fromkeys((aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding), _count_convolution_flops),
    aten.scaled_dot_product_attention.default: _count_attention_flops,
}
