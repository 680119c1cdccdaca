"""A complex result comes back as floats with one more axis: the model returns torch.complex64, the file returns float32 of shape [..., 2]

ONNX Runtime gives and takes no complex numbers. The official exporter keeps them as pairs, real part first, also where they leave the
graph, and does not say so. `abs`, indexing from the right or a product after the call then mean something else, often without an error.
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
    """Return pairs on purpose, so that model and file agree. `torch.view_as_complex(torch.from_numpy(...))` turns them back afterwards."""
    return export("dynamo", Pairs(Spectrum()), SAMPLES[0], dynamic_shapes=ROWS), Pairs(Spectrum()), SAMPLES


def torch_export() -> Claim:
    """Where it need not be ONNX, an exported program returns complex numbers."""
    return export("torch.export", Spectrum(), SAMPLES[0], dynamic_shapes=ROWS), Spectrum(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"output.*: dtype torch\.float\d+ where eager has torch\.complex\d+",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", pairs), Fix("another exporter", torch_export)),
    threads=("pytorch/pytorch#170054", "onnx/onnx#4785"),
)
