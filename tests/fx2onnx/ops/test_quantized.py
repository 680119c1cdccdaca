"""Floats on a grid: exact at every step and at every half of one, also for values beyond the grid; what has no file is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from inputs import INF, NAN, OWN, halves, normal
from operators import Call, check_both, check_further, nodes_of
from torch import nn

from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedArgument, UnsupportedOps
from fx2onnx.ops import quantized
from fx2onnx.ops.quantized import HALF_BELOW, LEAST, MOST, Rounding

DECOMPOSED = torch.ops.quantized_decomposed
GRIDS = [(torch.qint8, 3), (torch.qint8, -4), (torch.qint8, 0), (torch.quint8, 0), (torch.quint8, 127)]
pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")


def exactly(function: Callable[[torch.Tensor], Any], x: torch.Tensor) -> None:
    """Compare the whole numbers one by one, by an export of a few rows, at all rows, at one and at none."""
    program = to_onnx(Call(function, (x[:7],), {}), (x[:7],), dynamic_shapes=(({0: "rows"},),), **OWN)
    for given in (x, x[:1], x[:0]):
        for actual, expected in zip(program(given), function(given), strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-6 if expected.is_floating_point() else 0, atol=0)


def both(made: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The whole numbers of a quantised tensor, and what they stand for."""
    return made.int_repr(), made.dequantize()


@pytest.mark.parametrize(("dtype", "zero"), GRIDS, ids=str)
@pytest.mark.parametrize("step", [0.02, 0.00214854861, 0.125, 0.7])
def test_a_grid_of_one_step_is_exact(dtype: torch.dtype, zero: int, step: float) -> None:
    exactly(lambda x: both(torch.quantize_per_tensor(x, step, zero, dtype)), halves(step))
    exactly(lambda x: both(torch.quantize_per_tensor(x, torch.tensor(step), torch.tensor(zero), dtype)), halves(step))


def quantize_as(rounding: Rounding, x: torch.Tensor, step: float, zero: int) -> torch.Tensor:
    """Quantise to qint8 as a torch that rounds so, computed with integers of 64 bits."""
    inverse = (1 / torch.tensor(step)).item()
    if rounding.adds_zero_point_first:
        whole = (x.double() * inverse + zero).float().round()
    else:
        steps = (x * torch.tensor(inverse)).nan_to_num(nan=MOST, posinf=MOST, neginf=LEAST - 128).clamp(LEAST - 128, MOST)
        whole = steps.round().double() + zero
        whole = torch.where(whole < -(2**31), 127, whole) if rounding.wraps else whole
    return whole.nan_to_num(nan=127).clamp(-128, 127).to(torch.int8)


@pytest.mark.parametrize("zero", [-128, -4, 0, 3])
@pytest.mark.parametrize("rounding", [Rounding(True, False), Rounding(False, True), Rounding(False, False)], ids=str)
def test_each_way_to_round_is_exact_with_every_torch(rounding: Rounding, zero: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized, "probe_rounding", lambda: rounding)
    x = torch.cat([halves(0.7), torch.tensor([HALF_BELOW]), 0.7 * torch.tensor([-(2.0**31), LEAST, MOST, 2.0**31])])
    call = Call(lambda x: torch.quantize_per_tensor(x, 0.7, zero, torch.qint8).int_repr(), (x[:7],), {})
    program = to_onnx(call, (x[:7],), dynamic_shapes=(({0: "rows"},),), **OWN)
    torch.testing.assert_close(program(x)[0], quantize_as(rounding, x, 0.7, zero), rtol=0, atol=0)


@pytest.mark.parametrize("repeats", [1, 8, 40])
@pytest.mark.parametrize("zero", [-4, 0, 3])
def test_values_at_the_ends_of_int32_are_exact_in_short_and_long_tensors(zero: int, repeats: int) -> None:
    ends = torch.tensor([HALF_BELOW, INF, -INF, NAN, -(2.0**31), LEAST, LEAST - 256, MOST, 2.0**31])
    for step in (0.7, 1.0):
        exactly(lambda x, step=step: both(torch.quantize_per_tensor(x, step, zero, torch.qint8)), ends.repeat(repeats))


@pytest.mark.parametrize("step", [0.02, 0.7])
def test_a_grid_of_one_step_for_each_channel_is_exact(step: float) -> None:
    steps, zeros = step * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), torch.tensor([3, 0, -4])
    x = halves(step)[:, None].repeat(1, 3)
    exactly(lambda x: both(torch.quantize_per_channel(x, steps, zeros, 1, torch.qint8)), x)
    exactly(lambda x: both(torch.quantize_per_channel(x.T, steps, zeros, 0, torch.qint8)), x)


def test_a_step_that_values_decide() -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(x, x.abs().max() / 127, torch.tensor(0), torch.qint8).dequantize()

    check_further(scaled, (normal(3, 4),), (normal(7, 4),), ({0: "rows"},))


@pytest.mark.parametrize("channels", [False, True])
def test_a_quantised_weight_is_whole_numbers_in_the_file(channels: bool) -> None:
    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            grid = (torch.rand(4) / 9 + 0.1, torch.arange(4), 1) if channels else (0.1, 3)
            quantize = torch.quantize_per_channel if channels else torch.quantize_per_tensor
            self.register_buffer("weight", quantize(normal(64, 4), *grid, torch.qint8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight.dequantize()

    product = Product()
    program = to_onnx(product, (normal(3, 64),), dynamic_shapes=({0: "rows"},), **OWN)
    assert program.model.graph.initializers["weight"].dtype.name == "INT8"
    for rows in (3, 7, 0):
        torch.testing.assert_close(program(normal(rows, 64))[0], product(normal(rows, 64)))


REFUSED = {
    "an operator of quantised tensors": (lambda q: q.relu().dequantize(), UnsupportedOps, "no translation for quantised tensors"),
    "a write": (lambda q: q[0].fill_(0.5).dequantize(), UnsupportedOps, "no translation for quantised tensors"),
    "a result": (lambda q: q, UnsupportedArgument, r"return dequantize\(\) or int_repr\(\)"),
    "a test beside it": (
        lambda q: q.dequantize() if q.dequantize().sum() > 0 else q.int_repr().float(),
        UnsupportedOps,
        "no translation for quantised tensors",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_else_is_done_with_quantised_tensors_is_refused(what: str) -> None:
    function, error, said = REFUSED[what]
    call = Call(lambda x: function(torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)), (normal(3, 4),), {})
    with pytest.raises(error, match=said):
        to_onnx(call, (normal(3, 4),), capture="run")


def test_types_that_no_kernel_has_are_refused() -> None:
    wide = torch.quantize_per_tensor(normal(3), 0.1, 0, torch.qint32)
    with pytest.raises(UnsupportedOps, match=r"has no kernels for torch.qint32"):
        to_onnx(
            Call(lambda x: torch.quantize_per_tensor(x, 0.1, 0, wide.dtype).dequantize(), (normal(3),), {}), (normal(3),), capture="run"
        )
    with pytest.raises(UnsupportedArgument, match="quantised"):
        to_onnx(Call(lambda q: q.dequantize(), (wide,), {}), (wide,), capture="run")
    with pytest.raises(UnsupportedArgument, match=r"not supported: call dequantize\(\)"):
        to_onnx(Call(lambda x: x + wide.dequantize(), (normal(3),), {}), (normal(3),), capture="run")


def pair(*given: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """The function that rounds to a grid and back."""
    return lambda x: DECOMPOSED.dequantize_per_tensor(DECOMPOSED.quantize_per_tensor(x, *given), *given)


@pytest.mark.parametrize("opset", range(18, 27))
def test_the_pair_stays_a_pair_in_every_opset(opset: int) -> None:
    given = (0.02, 3, -128, 127, torch.int8)
    check_both(pair(*given), normal(3, 4), options={"opset_version": opset, **OWN})
    assert nodes_of(pair(*given), normal(3, 4), opset_version=opset) == ["QuantizeLinear", "DequantizeLinear"]


@pytest.mark.parametrize(("least", "most", "dtype"), [(-127, 127, torch.int8), (0, 127, torch.uint8), (-8, 7, torch.int8)])
def test_a_range_narrower_than_that_of_its_type_is_kept(least: int, most: int, dtype: torch.dtype) -> None:
    check_both(pair(0.02, 3, least, most, dtype), 2 * normal(30, 4), options=OWN)


def test_a_grid_of_16_bits_begins_with_opset_21() -> None:
    given = (0.0002, 3, -32768, 32767, torch.int16)
    check_both(pair(*given), normal(3, 4), options={"opset_version": 21, **OWN})
    with pytest.raises(UnsupportedOps, match=r"opset 20 does not support torch.int16"):
        check_both(pair(*given), normal(3, 4), options=OWN)


def test_a_pair_by_steps_that_are_tensors() -> None:
    def rounded(x: torch.Tensor) -> torch.Tensor:
        given = (x.abs().max() / 100, torch.tensor(2), -128, 127, torch.int8)
        return DECOMPOSED.dequantize_per_tensor.tensor(DECOMPOSED.quantize_per_tensor.tensor(x, *given), *given)

    check_both(rounded, normal(3, 4), options=OWN)


def test_a_bias_of_32_bits_is_scaled_without_a_zero_point() -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return DECOMPOSED.dequantize_per_tensor(x, 0.001, 0, -(2**31), 2**31 - 1, torch.int32)

    check_both(scaled, torch.tensor([[-70_000, 3], [0, 123_456]], dtype=torch.int32), options=OWN)


def test_a_pair_of_channels_is_right_in_the_newest_opset() -> None:
    given = (torch.rand(4, dtype=torch.float64) / 9 + 0.1, torch.arange(4), 1, -128, 127, torch.int8)

    def rounded(x: torch.Tensor) -> torch.Tensor:
        return DECOMPOSED.dequantize_per_channel(DECOMPOSED.quantize_per_channel(x, *given), *given)

    check_both(rounded, normal(3, 4), options={"opset_version": 26})


@pytest.mark.parametrize("ends", [(-128, 127), (-127, 127)])
def test_a_pair_of_a_weight_on_ties_is_exact(ends: tuple[int, int]) -> None:
    class OfWeight(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(halves(0.7)[:-8].reshape(-1, 6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return pair(0.7, 0, *ends, torch.int8)(self.weight) + x

    model = OfWeight()
    program = to_onnx(model, (torch.zeros(6),), **OWN)
    torch.testing.assert_close(program(torch.zeros(6))[0], model(torch.zeros(6)), rtol=0, atol=0)
