"""The layouts that calls without values are given, held against those of the same calls with values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from fx2onnx.compat.fake_tensors import DirectKernelMode, FakeTensor
from fx2onnx.trace.compute_budget import ComputeBudget
from fx2onnx.trace.events import flatten_arguments
from fx2onnx.trace.fake_layouts import CONTIGUOUS_ALWAYS, POINTWISE, SHAPES, layout_of_result

aten = torch.ops.aten
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def randn(*shape: int) -> Tensor:
    return torch.rand(*shape) + 0.5


def layouts() -> Iterator[Tensor]:
    """A contiguous tensor of (2, 3, 4, 6), and others of this shape."""
    yield randn(2, 3, 4, 6)
    yield randn(2, 3, 6, 4).transpose(2, 3)
    yield randn(2, 4, 6, 3).permute(0, 3, 1, 2)
    yield randn(2, 3, 4, 12)[..., ::2]
    yield randn(1, 3, 4, 6).expand(2, -1, -1, -1)


def calls() -> Iterator[Call]:
    statistics = torch.zeros(3), torch.ones(3)
    for x in layouts():
        for func in POINTWISE:
            binary = (
                [(), (2.0,)]
                if func is aten.pow.Tensor_Scalar
                else [(), (x,), (2,), (0.5,), (randn(6),), (randn(3, 1, 1),), (randn(5, 2, 3, 1, 6),)]
            )
            takes_two = len([one for one in func._schema.arguments if not one.kwarg_only]) > 1
            yield from ((func, (x, *more), {}) for more in binary if bool(more) == takes_two)
        yield aten.gelu.default, (x,), {"approximate": "tanh"}
        yield aten.add.Tensor, (x, x), {"alpha": 2}
        yield aten.linear.default, (x, randn(5, 6)), {}
        yield aten.linear.default, (x, randn(6, 5).T, randn(5)), {}
        yield aten.linear.default, (x[0, 0, 0], randn(5, 6)), {}
        yield aten.matmul.default, (x, x.mT), {}
        yield aten.matmul.default, (x, randn(6, 5)), {}
        yield aten.matmul.default, (x, randn(3, 6, 5)), {}
        yield aten.matmul.default, (x[0], x[0].mT), {}
        yield aten.matmul.default, (randn(4, 4), x), {}
        yield aten.matmul.default, (x[0, 0], randn(6, 5)), {}
        yield aten.conv2d.default, (x, randn(5, 3, 2, 3), randn(5), [2, 1], [1, 0], [1, 2]), {}
        yield aten.conv2d.default, (x, randn(6, 1, 1, 1), None, [1], [0], [1], 3), {}
        yield aten.conv1d.default, (x[0], randn(5, 4, 3)), {}
        yield aten.conv3d.default, (x[None], randn(5, 2, 2, 2, 3), None, [2], [1, 0, 1]), {}
        yield aten.batch_norm.default, (x, None, None, *statistics, False, 0.1, 1e-5, False), {}
        yield aten.batch_norm.default, (x, None, None, *map(torch.clone, statistics), True, 0.1, 1e-5, False), {}
        yield aten.layer_norm.default, (x, [4, 6], None, None), {}
        yield aten.softmax.int, (x, -1), {}
        yield aten.softmax.int, (x, 1, torch.float64), {}
        yield aten.mean.dim, (x, [-1, 1], True), {}
        yield aten.mean.dim, (x, [0]), {}
        yield aten.cat.default, ([x, randn(2, 3, 1, 6)], -2), {}
        yield aten.cat.default, ([x, randn(2, 3, 4, 6).double()],), {}
        yield aten.cat.default, ([randn(0), x],), {}


CALLS = list(calls())


@pytest.mark.parametrize("func", SHAPES, ids=str)
def test_layouts_are_those_of_calls_with_values(func: Any) -> None:
    known = []
    for _, args, kwargs in (call for call in CALLS if call[0] is func):
        leaves, _ = flatten_arguments(args, kwargs)
        layout = layout_of_result(func, leaves, args, kwargs)
        real = func(*args, **kwargs)
        if layout is not None:
            known.append(layout)
            assert (layout.shape, layout.stride(), layout.dtype) == (real.shape, real.stride(), real.dtype), args
    assert known, "no rule applies"


@pytest.mark.parametrize("func", CONTIGUOUS_ALWAYS, ids=str)
def test_products_of_transposed_matrices_have_a_rule(func: Any) -> None:
    args = randn(6, 4).T, randn(5, 6) if func is aten.linear.default else randn(5, 6).T
    assert layout_of_result(func, args, args, {}) is not None


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (aten.linear.default, (randn(2, 3), randn(5, 4))),
        (aten.matmul.default, (randn(2, 3), randn(5, 4))),
        (aten.conv2d.default, (randn(1, 3, 2, 2), randn(5, 3, 4, 4))),
        (aten.conv2d.default, (randn(1, 4, 8, 8), randn(5, 3, 4, 4))),
        (aten.add.Tensor, (randn(2, 3), randn(2))),
        (aten.cat.default, ([randn(2, 3), randn(2, 4)],)),
        (aten.add.Tensor, (randn(2), 1j)),
        (aten.add.Tensor, (randn(2), randn(2).double())),
        (aten.neg.default, (torch.arange(3),)),
    ],
    ids=str,
)
def test_calls_that_fail_or_change_the_dtype_have_no_rule(func: Any, args: tuple[Any, ...]) -> None:
    assert layout_of_result(func, flatten_arguments(args, {})[0], args, {}) is None


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "view": lambda x: x.view(3, 2, 4),
    "expand": lambda x: x[:1].expand(5, -1, -1),
    "t": lambda x: x[0].t(),
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "slice": lambda x: x[:, 1:3:2],
    "select": lambda x: x.select(1, 2),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:1].squeeze(0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_without_values_share_memory_and_its_version(name: str) -> None:
    mode, x = DirectKernelMode(), randn(2, 3, 4).requires_grad_()
    real = VIEWS[name](x * 1)
    with mode:
        base = FakeTensor(mode, torch.empty(2, 3, 4, device="meta", requires_grad=True), torch.device("cpu")) * 1
        view = VIEWS[name](base)
        layout = view.shape, view.stride(), view.storage_offset(), view.device, view.requires_grad
        assert layout == (real.shape, real.stride(), real.storage_offset(), real.device, real.requires_grad)
        assert view.untyped_storage()._cdata == base.untyped_storage()._cdata
        view.relu_()
    assert base._version == view._version == 1


def test_results_without_values_can_be_written() -> None:
    work = ComputeBudget(None)
    x = work.like(randn(2, 3).requires_grad_())
    made = work.call_fake(aten.linear.default, [x, work.like(randn(4, 3))], 2)
    assert made.relu_() is made
