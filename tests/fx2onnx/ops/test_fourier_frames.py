"""Spectrograms there and back: windows, hops, both sides, one signal or several, at lengths never seen."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from inputs import normal
from operators import Call, check

from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedOps

X = normal(2, 80)
HANN = torch.hann_window(16)
KINDS: dict[str, dict[str, Any]] = {
    "window": {"n_fft": 16, "hop_length": 4, "window": HANN},
    "no window": {"n_fft": 16, "hop_length": 8, "window": torch.ones(16)},
    "window shorter than the frame": {"n_fft": 20, "hop_length": 5, "win_length": 16, "window": HANN},
    "odd frame": {"n_fft": 15, "hop_length": 3, "win_length": 15, "window": torch.hann_window(15)},
    "normalized": {"n_fft": 16, "hop_length": 4, "window": HANN, "normalized": True},
    "both sides": {"n_fft": 16, "hop_length": 4, "window": HANN, "onesided": False},
    "hop as it is": {"n_fft": 16, "window": HANN},
}  # fmt: skip


def spectrogram(x: torch.Tensor, **options: Any) -> torch.Tensor:
    return torch.view_as_real(torch.stft(x, return_complex=True, **options))


@pytest.mark.parametrize("name", KINDS)
def test_of_frames(name: str) -> None:
    check(lambda x: spectrogram(x, **KINDS[name]), X)
    check(lambda x: spectrogram(x, center=False, **KINDS[name]), X[0])


@pytest.mark.parametrize("name", KINDS)
def test_there_and_back(name: str) -> None:
    options = KINDS[name]

    def call(x: torch.Tensor) -> torch.Tensor:
        return torch.istft(torch.stft(x, return_complex=True, **options) * 2, **options)

    check(call, X)
    check(call, X[0])


@pytest.mark.parametrize("length", [70, 80, 100])
def test_back_to_a_length(length: int) -> None:
    check(lambda x: torch.istft(torch.stft(x, 16, 4, window=HANN, return_complex=True), 16, 4, window=HANN, length=length), X)


def test_at_other_ends_of_the_signal() -> None:
    check(lambda x: spectrogram(x, n_fft=16, window=HANN, pad_mode="constant"), X)
    check(lambda x: torch.istft(torch.stft(x, 16, 4, center=False, return_complex=True), 16, 4, center=False), X)


def test_of_lengths_never_seen() -> None:
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        frames = torch.stft(x, 16, 4, window=HANN, return_complex=True)
        return torch.istft(frames, 16, 4, window=HANN) + frames.abs().mean()

    _check_at_lengths(there_and_back, "run")


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_of_frames_of_lengths_never_seen(capture: str) -> None:
    _check_at_lengths(lambda x: spectrogram(x, n_fft=16, hop_length=4, window=HANN, pad_mode="constant"), capture)


def _check_at_lengths(function: Any, capture: str) -> None:
    call = Call(function, (X,), {})
    program = to_onnx(call, (X,), dynamic_shapes=(({0: "batch", 1: "length"},),), capture=capture)
    for sizes in ((3, 81), (2, 123), (5, 64)):
        x = normal(*sizes)
        torch.testing.assert_close(program(x)[0], call(x), rtol=1e-4, atol=1e-5)


class Moved(torch.nn.Module):
    """A spectrogram in decibels, whose window goes where the model goes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", HANN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, 16, 4, window=self.window, return_complex=True).abs().square().clamp(min=1e-6).log10()


def test_a_window_that_is_a_buffer() -> None:
    program = to_onnx(Moved(), (X,), dynamic_shapes=({0: "batch"},))
    torch.testing.assert_close(program(X[:1])[0], Moved()(X[:1]), rtol=1e-4, atol=1e-5)


def test_frames_of_complex_numbers_are_refused() -> None:
    with pytest.raises(UnsupportedOps, match="complex input and align_to_window are not supported"):
        check(lambda x: torch.stft(x + 0j, 16, window=HANN, return_complex=True, onesided=False).abs(), X)
