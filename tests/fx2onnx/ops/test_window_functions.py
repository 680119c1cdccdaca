"""The windows of signals, of a length that is known and of one that moves: as torch has them, whose hamming is not that of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import OWN, normal
from modules import Of
from operators import check, check_both

from exportlab import to_onnx, verify

WINDOWS = {
    "hann": torch.hann_window,
    "hamming": torch.hamming_window,
    "blackman": torch.blackman_window,
    "bartlett": torch.bartlett_window,
}


def beside(window: Callable[..., torch.Tensor], *arguments: Any, **options: Any) -> Callable[[torch.Tensor], Any]:
    """A function of a signal that returns the window of its length, and one of five."""
    return lambda x: (x[:, None] * window(len(x), *arguments, **options)[:, None], window(5, *arguments, **options) + x.sum())


@pytest.mark.parametrize("length", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_has_the_shape_that_torch_gives_it(name: str, periodic: bool, length: int) -> None:
    check(beside(WINDOWS[name], periodic), normal(length), options=OWN)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_of_a_length_that_moves(name: str, dtype: torch.dtype) -> None:
    def of_size(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        n = x.shape[0]
        return x * WINDOWS[name](n, dtype=dtype), x * WINDOWS[name](n, periodic=False)

    model = Of(of_size)
    program = to_onnx(model, (normal(9),), dynamic_shapes=({0: "n"},))
    report = verify(program, model, [(normal(n),) for n in (9, 1, 3, 8, 40)])
    assert report.outcome == "ok", report


def test_a_hamming_window_of_numbers_of_ones_own() -> None:
    check_both(lambda x: x * torch.hamming_window(12, False, 0.6) + torch.hamming_window(12, True, 0.6, 0.3), normal(12), options=OWN)


def test_a_kaiser_window_is_a_constant() -> None:
    check(lambda x: x * torch.kaiser_window(7, True, 5.0), normal(7), options=OWN)
