"""Fourier transforms and complex numbers. Rotary positions are in attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor

SIGNAL = {"batch": (2, 3, 1, 4), "length": (12, 15, 1, 8)}


@case(dims={"batch": (2, 3, 1, 4)}, topics=("fourier", "complex"))
def fourier_filter() -> Declaration:
    """A transform, a product with a complex weight, and the inverse: is it a complex product?"""

    class Filter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(7, dtype=torch.complex64))

        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.irfft(torch.fft.rfft(x) * self.weight, n=x.shape[-1])

    return Filter(), (tensor("batch", 12),)


@case(dims=SIGNAL, topics=("fourier", "dynamic shapes"))
def spectrum_of_moving_length() -> Declaration:
    """Magnitudes of half the frequencies of a dynamic length: does the transform follow the length?"""

    class Spectrum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.rfft(x, norm="ortho").abs()

    return Spectrum(), (tensor("batch", "length"),)


@case(dims=SIGNAL, topics=("fourier", "silence"))
def odd_and_even_lengths() -> Declaration:
    """Transform and inverse without the length: odd lengths become even in eager. In the export too?"""

    class ThereAndBack(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            long = torch.cat([x, x[:, :1]], -1)
            again = torch.fft.irfft(torch.fft.rfft(long))
            return again[:, : x.shape[1]] + torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1])

    return ThereAndBack(), (tensor("batch", "length"),)


@case(dims=SIGNAL, topics=("fourier", "dynamic shapes"))
def long_convolution() -> Declaration:
    """A filter as long as the signal, by padded transforms: is the padding computed at run time?"""

    class LongConvolution(nn.Module):
        def forward(self, x: Tensor, kernel: Tensor) -> Tensor:
            n = 2 * x.shape[-1]
            both = torch.fft.rfft(x, n=n) * torch.fft.rfft(kernel, n=n)
            return torch.fft.irfft(both, n=n)[..., : x.shape[-1]]

    return LongConvolution(), (tensor("batch", "length"), tensor("length"))


@case(dims={"batch": (2, 3, 1, 4)}, topics=("fourier", "complex"))
def mixing_by_fourier() -> Declaration:
    """FNet transforms tokens and features and keeps the real part: along the right axes?"""

    class Mixing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=1).real + torch.fft.fft2(x, norm="forward").imag

    return Mixing(), (tensor("batch", 5, 8),)


@case(dims={"batch": (2, 3, 1, 4)}, topics=("fourier", "complex"))
def shifted_frequencies() -> Declaration:
    """Shift zero frequency to the middle, keep low ones, shift back: are odd sizes right?"""

    class LowPass(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            spectrum = torch.fft.fftshift(torch.fft.fft(x), dim=-1)
            low = torch.fft.fftshift(torch.fft.fftfreq(9).abs() < 0.3)
            return torch.fft.ifft(torch.fft.ifftshift(spectrum * low, dim=-1)).real

    return LowPass(), (tensor("batch", 9),)


@case(dims={"batch": (2, 3, 1, 4), "length": (64, 100, 1, 77)}, topics=("fourier", "audio", "dynamic shapes"))
def spectrogram() -> Declaration:
    """`torch.stft` of a dynamic signal with padded ends, in decibels: is the number of frames right?"""

    class Spectrogram(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("window", torch.hann_window(16))

        def forward(self, x: Tensor) -> Tensor:
            made = torch.stft(x, 16, hop_length=4, window=self.window, pad_mode="constant", return_complex=True)
            return 10 * torch.log10(made.abs().square().clamp(min=1e-6))

    return Spectrogram(), (tensor("batch", "length"),)


@case(dims={"batch": (2, 3, 1, 4)}, topics=("fourier", "audio"))
def short_frames() -> Declaration:
    """`torch.stft` without centring, with a short window, as float pairs: is the window padded correctly?"""

    class Frames(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            made = torch.stft(x, 16, 8, 10, torch.ones(10), center=False, normalized=True, return_complex=True)
            return torch.view_as_real(made)

    return Frames(), (tensor("batch", 64),)


@case(dims={"batch": (2, 3, 1, 4)}, topics=("fourier", "audio"))
def denoised() -> Declaration:
    """Quiet frequencies are removed, and `istft` joins the frames: is the overlap normalised?"""

    class Denoised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("window", torch.hann_window(16))

        def forward(self, x: Tensor) -> Tensor:
            frames = torch.stft(x, 16, 4, window=self.window, return_complex=True)
            loud = torch.where(frames.abs() > 2, frames, 0)
            return torch.istft(loud, 16, 4, window=self.window, length=x.shape[-1])

    return Denoised(), (tensor("batch", 64),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("complex", "signature"))
def complex_in_and_out() -> Declaration:
    """Complex input and output: ONNX has the type, but does the runtime have the operators?"""

    class Rotated(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return z * (1 + 2j) + z.conj()

    return Rotated(), (tensor("batch", 3, dtype=torch.complex64),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("complex",))
def complex_from_parts() -> Declaration:
    """Two floats become a complex number: are quotient, power, absolute value and angle right?"""

    class Parts(nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            z = torch.complex(a, b)
            made = (z * z) / (z + 3) - 1j * z.exp()
            return made.abs(), made.angle(), made.real * made.imag

    return Parts(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("complex", "reshape"))
def polar_to_pairs() -> Declaration:
    """`polar`, `view_as_real` and `view_as_complex`, with transposes: does the last axis stay last?"""

    class Pairs(nn.Module):
        def forward(self, radius: Tensor, angle: Tensor) -> Tensor:
            z = torch.polar(radius.abs(), angle)
            swapped = torch.view_as_real(z.mT).flip(-1).contiguous()
            return torch.view_as_real(torch.view_as_complex(swapped) * z.mT.sum(0))

    return Pairs(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("complex", "layers"))
def complex_linear() -> Declaration:
    """A complex linear map of a real input, with summed powers: are the real products right?"""

    class ComplexLinear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5, 3, dtype=torch.complex64))

        def forward(self, x: Tensor) -> Tensor:
            made = x.to(torch.complex64) @ self.weight
            return (made @ made.mH).real

    return ComplexLinear(), (tensor("batch", 5),)


@case(dims={"batch": (2, 3, 1, 4)}, topics=("fourier", "silence"))
def envelope() -> Declaration:
    """The analytic signal zeroes negative frequencies in place and doubles the others: is the write kept?"""

    class Envelope(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            spectrum = torch.fft.fft(x)
            spectrum[:, 1:6] *= 2
            spectrum[:, 7:] = 0
            return torch.fft.ifft(spectrum).abs()

    return Envelope(), (tensor("batch", 12),)
