"""Casts and copies: right in ONNX Runtime in every dtype, and no node where nothing changes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from inputs import DTYPES, WHOLE
from operators import check, check_both
from torch import nn

from fx2onnx import to_onnx

ALL = [*DTYPES, torch.int16]


SAME = [
    "x.clone()", "x.contiguous()", "x.detach()", "x.to(x.dtype)", "x.to('cpu')", "x.type_as(x)", "+x", "x.conj()", "x.resolve_conj()",
    "x.resolve_neg()", "x.real", "torch.ops.aten.alias(x)", "torch.ops.aten.lift_fresh(x)", "x.float()", "x.to(torch.zeros(1))",
    "x.pow(1)", "F.dropout(x, 0.5, False)",
]  # fmt: skip


@pytest.mark.parametrize("written", SAME)
def test_what_changes_nothing_becomes_no_node(written: str) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return eval(written, {"torch": torch, "F": F, "x": x}) * 2

    check(Model(), torch.randn(3))
    assert [node.op_type for node in to_onnx(Model(), (torch.randn(3),)).model.graph] == ["Mul"]


@pytest.mark.parametrize("source", ALL)
def test_every_dtype_is_cast_to_every_other(source: torch.dtype) -> None:
    x = torch.tensor([0, 1, 3, 100]).to(source)
    check_both(lambda x: [x.to(target) for target in ALL], x)
    check(lambda x, y: (x.type_as(y), x.to(y), x.to("cpu", torch.int32), x.double(), x.bool()), x, torch.zeros(1))


def test_floats_are_truncated_and_large_integers_wrap_in_casts() -> None:
    check(lambda x: (x.long(), x.int(), x.bool()), torch.tensor([-1.9, 0.5, 1.9, -0.0]))
    check(lambda x: (x.int(), x.to(torch.int8), x.to(torch.uint8)), torch.tensor([1 << 33, -1, 300, -300]))


def test_copies_take_the_dtype_and_the_sizes_of_what_they_are_written_into() -> None:
    check_both(lambda x, y: torch.ops.aten.copy(x, y), torch.zeros(2, 3), torch.arange(3))
    check_both(lambda x: (torch.ops.aten.fill(x, 2), torch.ops.aten.zero(x)), WHOLE)
    check(lambda x: torch.ops.aten.fill(x, torch.tensor(2.5)), torch.tensor(1))
