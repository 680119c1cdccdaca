"""Masks of bytes and classes that are counted are taken by torch.export, too, and right at other sizes and values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import Op

from exportlab import to_onnx, verify

X = torch.randn(5, 4)
MASK = torch.tensor([1, 0, 2, 0, 1], dtype=torch.uint8)
MOVING = (({0: "batch"}, {0: "batch"}),)


MASKS = {
    "read": lambda x, mask: x[mask] * 2,
    "with a column": lambda x, mask: x[mask, 1],
    "twice": lambda x, mask: x[mask][x[mask, 0] > 0].cumsum(0),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_of_bytes_is_no_index(name: str) -> None:
    module = Op(MASKS[name])
    program = to_onnx(module, (X, MASK), dynamic_shapes=MOVING)
    longer = torch.tensor([0, 1, 1, 0, 3, 0, 0, 1], dtype=torch.uint8)
    verify(program, module, [(X, MASK), (torch.randn(8, 4), longer), (X, MASK * 0), (X[:0], MASK[:0])]).check()


@pytest.mark.parametrize("function", [F.one_hot, lambda x: F.one_hot(x.flatten(), -1).sum(0)])
def test_classes_are_counted_anew(function: Any) -> None:
    module, values = Op(function), torch.tensor([[1, 0, 3], [2, 2, 1]])
    program = to_onnx(module, (values,), dynamic_shapes=(({0: "batch"},),))
    verify(program, module, [(values,), (torch.tensor([[0, 0, 6]]),), (values * 0,)]).check()


def test_as_many_classes_as_are_asked_for_stay_so() -> None:
    module, values = Op(lambda x: F.one_hot(x, 5)), torch.tensor([1, 0, 3])
    program = to_onnx(module, (values,), dynamic_shapes=(({0: "batch"},),), capture="torch.export")
    verify(program, module, [(values,), (torch.tensor([4, 4]),)]).check()
