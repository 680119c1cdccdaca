"""Loops over parts of an axis that are longer than what runs are made at: they are rolled up from runs at several parts."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError

PART = 32


class Parts(nn.Module):
    """Takes a sequence in parts, each of which reads a state that the one before left; the last part is padded."""

    def forward(self, x: Tensor) -> Tensor:
        padded = (PART - x.shape[1] % PART) % PART
        parts = F.pad(x, (0, 0, 0, padded)).reshape(x.shape[0], -1, PART, x.shape[2])
        out, state = torch.zeros_like(parts), x.new_zeros(x.shape[0], x.shape[2])
        for i in range((x.shape[1] + padded) // PART):
            out[:, i] = parts[:, i] + state[:, None]
            state = state * 0.5 + parts[:, i].mean(1)
        return out.reshape(x.shape[0], -1, x.shape[2])[:, : x.shape[1]]


class Otherwise(nn.Module):
    """Does something else from the seventh part on."""

    def forward(self, x: Tensor) -> Tensor:
        total = x.new_zeros(())
        for i in range(x.shape[0] // PART):
            total = total + (x[i] if i < 6 else x[i].sin())
        return total


def sample(batch: int, seq: int) -> tuple[Tensor]:
    torch.manual_seed(0)
    return (torch.randn(batch, seq, 3),)


def test_a_loop_over_parts_is_rolled_up_from_an_example_of_one_part() -> None:
    model, sizes = Parts().eval(), ((2, 7), (1, 1), (3, PART - 1), (2, PART), (1, PART + 1), (2, 5 * PART + 2), (1, 20 * PART))
    program = to_onnx(model, sample(*sizes[0]), dynamic_shapes=({0: "batch", 1: "seq"},), capture="run")
    assert any(node.op_type == "Loop" for node in program.model.graph)
    verify(program, model, [sample(*size) for size in sizes]).check()


def test_parts_that_are_not_alike_are_refused() -> None:
    with pytest.raises(CaptureError, match="the operators called depend on the sizes"):
        to_onnx(Otherwise().eval(), (torch.randn(PART),), dynamic_shapes=({0: "rows"},), capture="run")
