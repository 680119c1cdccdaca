"""Short-time Fourier transforms and their inverse, as convolutions with the rows of the transform."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.complex_pairs import ComplexPair
from ..ir.dtypes import FLOAT
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates_complex
from .complex_parts import view_as_real


def _window(g: Graph, window: Any, n_fft: int, win_length: int | None) -> Tensor | None:
    """Return the window centred in a frame; None if it is 1 everywhere."""
    if isinstance(window, ComplexPair):
        raise Untranslated("a complex window is not supported")
    shorter = n_fft if win_length is None else win_length
    if window is None:
        if shorter == n_fft:
            return None
        window = g.const(torch.ones(shorter), FLOAT)
    before = (n_fft - shorter) // 2
    return window if shorter == n_fft else g.Pad(window, [before, n_fft - shorter - before])


def _waves(n_fft: int, bins: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cos and sin of 2π·f·t/n, (bins, n_fft), float64."""
    angles = torch.outer(torch.arange(bins), torch.arange(n_fft)).remainder(n_fft).double() * (2 * math.pi / n_fft)
    return angles.cos(), angles.sin()


@translates_complex(aten.stft.default)
def stft(
    g: Graph,
    x: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """stft(x, n_fft, hop, win, window, …) → Conv with kernels of waves times the window."""
    if isinstance(x, ComplexPair) or align_to_window:
        raise Untranslated("complex input and align_to_window are not supported")
    bins = n_fft // 2 + 1 if onesided is not False else n_fft
    cos, sin = _waves(n_fft, bins)
    waves = g.const(torch.cat([cos, -sin])[:, None], x.dtype)  # (2·bins, 1, n_fft)
    if (shape := _window(g, window, n_fft, win_length)) is not None:
        waves = g.Mul(waves, g.cast(shape, x.dtype))
    rows = g.Unsqueeze(x, [1]) if x.rank == 2 else g.Unsqueeze(x, [0, 1])  # (batch, 1, length)
    both = g.Conv(rows, waves, strides=[hop_length or n_fft // 4])  # (batch, 2·bins, frames)
    if normalized:
        both = g.Mul(both, 1 / math.sqrt(n_fft))
    real, imag = g.op("Split", both if x.rank == 2 else g.Squeeze(both, [0]), outputs=2, axis=-2, num_outputs=2)
    made = ComplexPair(real, imag)
    return made if g.result().dtype.is_complex else view_as_real(g, made)


@translates_complex(aten.istft.default)
def istft(
    g: Graph,
    z: ComplexPair,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Size | None = None,
    return_complex: bool = False,
) -> Tensor:
    """istft(z, n_fft, hop, win, window, …) → ConvTranspose, divided by the ConvTranspose of the squared window."""
    if return_complex:
        raise Untranslated("return_complex=True is not supported")
    hop, dtype = hop_length or n_fft // 4, z.real.dtype
    waves, squared = _waves_back(g, n_fft, _window(g, window, n_fft, win_length), dtype)
    if z.sizes[-2] != n_fft // 2 + 1:  # torch also uses only half of a two-sided transform
        z = z.map(lambda part: g.set_sizes(g.Slice(part, [0], [n_fft // 2 + 1], [-2]), z.sizes))
    both = g.Concat(z.real, z.imag, axis=-2)  # (…, 2·bins, frames)
    both = both if z.rank == 3 else g.Unsqueeze(both, [0])
    signal = g.ConvTranspose(both, waves, strides=[hop])  # (batch, 1, (frames - 1)·hop + n_fft)
    once = g.Expand(g.const([[[1.0]]], dtype), [1, 1, z.sizes[-1]])
    made = g.Div(signal, g.ConvTranspose(once, squared, strides=[hop]))
    if normalized:
        made = g.Mul(made, math.sqrt(n_fft))
    start, samples = n_fft // 2 if center else 0, g.sizes[-1]
    made = g.Slice(g.Squeeze(made, [1] if z.rank == 3 else [0, 1]), [start], [samples + start], [-1])
    return made if length is None else _filled_up(g, made, z.sizes[-1], start, n_fft, hop, samples)


def _waves_back(g: Graph, n_fft: int, window: Tensor | None, dtype: Any) -> tuple[Tensor, Tensor]:
    """Return the kernels of the inverse transform times the window, (2·bins, 1, n_fft), and the squared window, (1, 1, n_fft)."""
    bins = n_fft // 2 + 1
    cos, sin = _waves(n_fft, bins)
    twice = torch.ones(bins, 1, dtype=torch.float64)
    twice[1 : n_fft - bins + 1] = 2  # the mirror images of these are missing
    waves = g.const((torch.cat([cos * twice, -sin * twice]) / n_fft)[:, None], dtype)
    if window is None:
        return waves, g.const(torch.ones(1, 1, n_fft), dtype)
    window = g.cast(window, dtype)
    return g.Mul(waves, window), g.Reshape(g.Mul(window, window), [1, 1, n_fft])


def _filled_up(g: Graph, x: Tensor, frames: Size, start: int, n_fft: int, hop: int, samples: Size) -> Tensor:
    """Return the samples, padded with zeros if more were requested than the frames contain."""
    there = (frames - 1) * hop + n_fft - start
    if isinstance(there, int) and isinstance(samples, int) and there >= samples:
        return x
    missing = g.Max(g.Sub(g.ints([samples]), g.Slice(g.Shape(x), [-1], [2**31], [0])), g.const([0], torch.int64))
    before = g.const([0] * (2 * len(g.sizes) - 1), torch.int64)
    return g.Pad(x, g.Concat(before, missing, axis=0))
