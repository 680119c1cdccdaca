"""UnsupportedOperatorError: Exporting the operator 'aten::fft_rfft' to ONNX opset version 17 is not supported (the older exporter)

`torch.onnx.export(dynamo=False)` has one translation per operator, and what it has none for ends the export. No more are being added.
Complex numbers, and with them Fourier transforms, are the largest gap: no opset version helps, though the message sounds like it.
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
    """For a length that is known, the transform is two products of matrices. They take its square in work and in bytes."""
    return export("torchscript", ByWaves(8), SAMPLES[0], dynamic_shapes=ROWS), Spectrum(), SAMPLES


def dynamo() -> Claim:
    """The newer exporter, `dynamo=True`, writes a `DFT`, and complex numbers as pairs."""
    return export("dynamo", Spectrum(), SAMPLES[0], dynamic_shapes=ROWS), Spectrum(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"Exporting the operator '?(?:aten::)?(?:fft_|stft|istft|view_as_complex|view_as_real|complex|polar)\w*'? to ONNX opset"
    r" version \d+ is not supported",
    breaks=breaks,
    fixes=(Fix("change the model", by_waves), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#98833", "pytorch/pytorch#153823", "pytorch/pytorch#107588", "onnx/onnx#4843"),
)
