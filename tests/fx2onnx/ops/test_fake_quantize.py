"""Floats rounded to a grid are torch's own at every step, half of a step, and beyond the grid; weights become whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import pytest
import torch
from inputs import OWN, halves, normal
from operators import Call, check_both, nodes_of
from torch import nn

from fx2onnx import to_onnx

RANGES = [(-128, 127), (0, 255), (-127, 127), (0, 127), (-8, 7), (-32768, 32767), (0, 1000)]
KINDS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
Faked = Callable[[torch.Tensor], torch.Tensor]


def one_step(step: float, zero: int, ends: tuple[int, int]) -> Faked:
    """Round to a grid by numbers."""
    return lambda x: torch.fake_quantize_per_tensor_affine(x, step, zero, *ends)


def one_step_of_tensors(step: float, zero: int, ends: tuple[int, int]) -> Faked:
    """Round to a grid by tensors."""
    return lambda x: torch.fake_quantize_per_tensor_affine(x, torch.tensor(step), torch.tensor(zero, dtype=torch.int32), *ends)


def steps_of_rows(step: float, zero: int, ends: tuple[int, int], dtype: torch.dtype = torch.int32) -> Faked:
    """Round two columns to grids of their own."""
    steps, zeros = step * torch.tensor([1.0, 3.0]), torch.tensor([zero, 0], dtype=dtype)
    return lambda x: torch.fake_quantize_per_channel_affine(torch.stack([x, x], -1), steps, zeros, 1, *ends)


def exactly(function: Faked, x: torch.Tensor, further: tuple[torch.Tensor, ...] = ()) -> None:
    """Compare every element with eager, of a file exported with a few of them."""
    program = to_onnx(Call(function, (x[:5],), {}), (x[:5],), dynamic_shapes=(({0: "rows"},),), **OWN)
    for given in (x, *further):
        torch.testing.assert_close(program(given)[0], function(given), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("ends", RANGES, ids=str)
@pytest.mark.parametrize("step", [0.02, 0.7, 0.125, 2 / 255])
@pytest.mark.parametrize("made", [one_step, one_step_of_tensors, steps_of_rows])
def test_every_half_of_a_step_is_exact(made: Any, step: float, ends: tuple[int, int]) -> None:
    zero = 3 if ends[0] < 0 else 100
    exactly(made(step, zero, ends), halves(step))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("made", [one_step, steps_of_rows])
def test_every_dtype_is_exact(made: Any, dtype: torch.dtype) -> None:
    exactly(made(0.7, 3, (-128, 127)), halves(0.7).to(dtype))


def test_a_zero_point_between_two_steps() -> None:
    exactly(steps_of_rows(0.7, 3, (-128, 127), torch.float32), normal(100) * 100)


def weight_on_ties(rows: int) -> torch.Tensor:
    """A weight of which the greatest element of each row is half way between two steps, as symmetric observers make it."""
    return torch.randn(rows, 6, generator=torch.Generator().manual_seed(0))


class OfWeight(nn.Module):
    """Rounds its weight, row by row or as a whole, with the step of symmetric observers: the greatest element by 127.5."""

    def __init__(self, by_rows: bool, ends: tuple[int, int] = (-128, 127)) -> None:
        super().__init__()
        self.weight, self.ends = nn.Parameter(-weight_on_ties(64).abs()), ends
        greatest = self.weight.detach().abs().amax(1) if by_rows else self.weight.detach().abs().max()
        self.register_buffer("scale", greatest / 127.5)
        self.register_buffer("zero_point", torch.zeros_like(self.scale, dtype=torch.int32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = self.weight, self.scale, self.zero_point
        if self.scale.dim():
            return x @ torch.fake_quantize_per_channel_affine(*given, 0, *self.ends).T
        return x @ torch.fake_quantize_per_tensor_affine(*given, *self.ends).T


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("ends", [(-128, 127), (-127, 127), (-8, 7)])
def test_a_weight_is_stored_as_whole_numbers_and_exact(by_rows: bool, ends: tuple[int, int]) -> None:
    model = OfWeight(by_rows, ends)
    program = to_onnx(model, (torch.eye(6),), dynamic_shapes=({0: "rows"},), **OWN)
    stored = [value for value in program.model.graph.initializers.values() if value.dtype == ir.DataType.INT8 and value.shape.rank() == 2]
    assert len(stored) == 1
    torch.testing.assert_close(program(torch.eye(6))[0], model(torch.eye(6)), rtol=0, atol=0)


def test_a_weight_that_values_scale_is_exact() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(weight_on_ties(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fake_quantize_per_tensor_affine(self.weight, x.abs().max() / 127.5, torch.tensor(0), -128, 127)

    check_both(Scaled(), normal(3), options=OWN)


def test_a_grid_of_eight_bits_is_a_pair() -> None:
    assert nodes_of(one_step(0.1, 0, (-128, 127)), normal(3), **OWN)[-2:] == ["QuantizeLinear", "DequantizeLinear"]
