"""A complex output becomes float32 with an additional dimension: torch.complex64 in PyTorch, float32 of shape [..., 2] in ONNX Runtime

ONNX Runtime doesn't support complex inputs and outputs. `torch.onnx.export` represents complex numbers by pairs of real and imaginary part.
An output stays in this form, and the export doesn't report it. If you apply `abs`, a product or an index from the right to the output
afterwards, the result is wrong, often without an exception.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Spectrum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x)


SAMPLES = [(torch.linspace(0, 3, rows * 8).reshape(rows, 8).sin(),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Spectrum(), SAMPLES[0], dynamic_shapes=ROWS), Spectrum(), SAMPLES


class Pairs(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(self.model(x))


def pairs() -> Claim:
    """Return `torch.view_as_real(…)`, so that both models agree. `torch.view_as_complex(torch.from_numpy(...))` converts it back."""
    return export("dynamo", Pairs(Spectrum()), SAMPLES[0], dynamic_shapes=ROWS), Pairs(Spectrum()), SAMPLES


def torch_export() -> Claim:
    """Use `torch.export` if you don't need ONNX. The exported program returns complex numbers."""
    return export("torch.export", Spectrum(), SAMPLES[0], dynamic_shapes=ROWS), Spectrum(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"output.*: dtype torch\.float\d+ where eager has torch\.complex\d+",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", pairs), Fix("another exporter", torch_export)),
    threads=("pytorch/pytorch#170054", "onnx/onnx#4785"),
)
