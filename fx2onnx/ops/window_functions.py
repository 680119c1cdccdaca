"""Window functions of signals: hann, hamming, blackman, bartlett, kaiser. Windows of images are in windows.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.dtypes import DOUBLE, TORCH
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .create import make_range
from .pointwise import where

HAMMING = (0.54, 0.46)  # in torch; ONNX's HammingWindow uses 25/46 and 21/46
BLACKMAN = (0.42, 0.5, 0.08)
Shape = Callable[[Graph, Tensor, Tensor], Tensor]  # of the position of a sample and the number of steps


def _window(g: Graph, made: Callable[..., Any], shape: Shape, length: Size, periodic: bool, *numbers: float) -> Tensor:
    """Return torch's window as a constant; for a dynamic length, a float64 tensor (length,)."""
    if isinstance(length, int):
        return g.const(made(length, periodic, *numbers, dtype=TORCH[g.dtype]), g.dtype)
    samples = g.scalar(length, DOUBLE)
    steps = samples if periodic else g.Max(g.Sub(samples, 1.0), 1.0)
    window = shape(g, g.cast(make_range(g, length), DOUBLE), steps)
    return where(g, g.Equal(samples, 1.0), 1.0, window)  # for all windows


def _cosines(*factors: float) -> Shape:
    """Return the window function a - b cos(2πn/N) + c cos(4πn/N)."""

    def shape(g: Graph, place: Tensor, steps: Tensor) -> Tensor:
        angle = g.Div(g.Mul(place, 2 * math.pi), steps)
        found = g.Sub(factors[0], g.Mul(g.Cos(angle), factors[1]))
        return found if len(factors) == 2 else g.Add(found, g.Mul(g.Cos(g.Mul(angle, 2.0)), factors[2]))

    return shape


def _triangle(g: Graph, place: Tensor, steps: Tensor) -> Tensor:
    return g.Sub(1.0, g.Abs(g.Sub(g.Div(g.Mul(place, 2.0), steps), 1.0)))


@translates(aten.hann_window.default, aten.hann_window.periodic)
def hann_window(g: Graph, length: Size, periodic: bool = True, dtype: torch.dtype | None = None) -> Tensor:
    """hann_window(length, periodic) → a constant, or 1/2 - cos(2πn/N)/2."""
    return _window(g, torch.hann_window, _cosines(0.5, 0.5), length, periodic)


@translates(*(getattr(aten.hamming_window, overload) for overload in ("default", "periodic", "periodic_alpha", "periodic_alpha_beta")))
def hamming_window(
    g: Graph, length: Size, periodic: bool = True, alpha: float = HAMMING[0], beta: float = HAMMING[1], dtype: torch.dtype | None = None
) -> Tensor:
    """hamming_window(length, periodic, alpha, beta) → a constant, or α - β cos(2πn/N)."""
    return _window(g, torch.hamming_window, _cosines(alpha, beta), length, periodic, alpha, beta)


@translates(aten.blackman_window.default, aten.blackman_window.periodic)
def blackman_window(g: Graph, length: Size, periodic: bool = True, dtype: torch.dtype | None = None) -> Tensor:
    """blackman_window(length, periodic) → a constant, or 0.42 - cos(2πn/N)/2 + 0.08 cos(4πn/N)."""
    return _window(g, torch.blackman_window, _cosines(*BLACKMAN), length, periodic)


@translates(aten.bartlett_window.default, aten.bartlett_window.periodic)
def bartlett_window(g: Graph, length: Size, periodic: bool = True, dtype: torch.dtype | None = None) -> Tensor:
    """bartlett_window(length, periodic) → a constant, or 1 - |2n/N - 1|."""
    return _window(g, torch.bartlett_window, _triangle, length, periodic)


@translates(aten.kaiser_window.default, aten.kaiser_window.periodic, aten.kaiser_window.beta)
def kaiser_window(g: Graph, length: Size, periodic: bool = True, beta: float = 12.0, dtype: torch.dtype | None = None) -> Tensor:
    """kaiser_window(length, periodic, beta) → a constant."""
    if not isinstance(length, int):
        raise Untranslated("its length must be constant")
    return g.const(torch.kaiser_window(length, periodic, beta, dtype=torch.float32), g.dtype)
