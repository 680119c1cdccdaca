"""A block that differs from the first in what `forward` may read is not shared with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from stacks import Block, Stack, exported, stack
from torch import nn


def replaced(model: Stack) -> None:
    model.blocks[2] = Block(width=6)


def retuned(model: Stack) -> None:
    model.blocks[2].factor = 3.0


def moved_from_its_class(model: Stack) -> None:
    model.blocks[2].offset = 3.0


def hooked(model: Stack) -> None:
    model.blocks[2].register_forward_hook(lambda module, args, result: result + 1)


def hooked_inside(model: Stack) -> None:
    model.blocks[2].second.register_forward_pre_hook(lambda module, args: (args[0] + 1,))


def rewritten(model: Stack) -> None:
    model.blocks[2].forward = lambda x: x - 1


def reclassed(model: Stack) -> None:
    class Louder(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * 2

    model.blocks[2].__class__ = Louder


def without_bias(model: Stack) -> None:
    model.blocks[2].first = nn.Linear(8, 8, bias=False)


def tied_inside(model: Stack) -> None:
    model.blocks[2].second.weight = model.blocks[2].first.weight


def in_another_layout(model: Stack) -> None:
    block = model.blocks[2]
    block.first.weight = nn.Parameter(block.first.weight.detach().t().contiguous().t())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (replaced, "p_blocks_2_first_weight is a torch.float32 tensor of shape [6,8], not a torch.float32 tensor of shape [8,8]"),
        (retuned, "aten.mul.Tensor at tests/fx2onnx/stacks.py:29 in forward takes 3.0, not 1.0"),
        (moved_from_its_class, "aten.add.Tensor at tests/fx2onnx/stacks.py:29 in forward takes 3.0, not 0.0"),
        (hooked_inside, "it calls aten.add.Tensor at"),
        (rewritten, "it calls aten.sub.Tensor at"),
        (without_bias, "takes other arguments"),
        (tied_inside, "tied differently"),
        (reclassed, ""),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_block_that_differs_is_exported_right_and_not_shared(change: Callable[[Stack], None], reason: str) -> None:
    model = stack()
    change(model)
    report = exported(model.eval()).report
    assert "blocks.2" not in report.shared
    assert {"blocks.1", "blocks.3"} <= set(report.shared)
    assert reason in report.not_shared.get("blocks.2", "")


@pytest.mark.parametrize("change", [hooked, in_another_layout])
def test_a_block_shares_the_function_where_only_what_is_around_it_differs(change: Callable[[Stack], None]) -> None:
    model = stack()
    change(model)
    report = exported(model.eval()).report
    assert report.functions == {"Block": 4}
    assert report.not_shared == {}
