"""UnsupportedOperatorError: Exporting the operator 'aten::fft_rfft' to ONNX opset version 17 is not supported (`dynamo=False`)

The legacy exporter (`dynamo=False`) needs a translation for each operator, and new ones are no longer added. Complex numbers and Fourier
transforms are the largest gap. The message suggests that another opset version would help, but it doesn't.
"""

import math

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Spectrum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x).abs()


SAMPLES = [(torch.linspace(0, 3, rows * 8).reshape(rows, 8).sin(),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torchscript", Spectrum(), SAMPLES[0], dynamic_shapes=ROWS), Spectrum(), SAMPLES


class ByWaves(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(length), torch.arange(length // 2 + 1)) * (2 * math.pi / length)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((x @ self.cosines) ** 2 + (x @ self.sines) ** 2).sqrt()


def by_waves() -> Claim:
    """Write the transform as two matrix products if the length is fixed. Time and memory grow with the square of the length."""
    return export("torchscript", ByWaves(8), SAMPLES[0], dynamic_shapes=ROWS), Spectrum(), SAMPLES


def dynamo() -> Claim:
    """Use `dynamo=True`. It writes a `DFT` and represents complex numbers by pairs of floats."""
    return export("dynamo", Spectrum(), SAMPLES[0], dynamic_shapes=ROWS), Spectrum(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"Exporting the operator '?(?:aten::)?(?:fft_|stft|istft|view_as_complex|view_as_real|complex|polar)\w*'? to ONNX opset"
    r" version \d+ is not supported",
    breaks=breaks,
    fixes=(Fix("change the model", by_waves), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#98833", "pytorch/pytorch#153823", "pytorch/pytorch#107588", "onnx/onnx#4843"),
)
