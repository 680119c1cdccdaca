"""DispatchError: No ONNX function found ... for the complex-valued input: the operator is translated for real numbers only

ONNX Runtime computes with no complex type, so the official exporter keeps a complex tensor as pairs of floats. Every operator then needs a
second translation, for pairs: sums, products, `abs`, slices and the transforms have one, `where`, `exp`, `full_like`, `slice_scatter` and
many others have none.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Denoised(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x)
        return torch.where(spectrum.abs() > 0.5, spectrum, 0).abs()


SAMPLES = [(torch.linspace(0, 3, rows * 8).reshape(rows, 8).sin(),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Denoised(), SAMPLES[0], dynamic_shapes=ROWS), Denoised(), SAMPLES


class ByProduct(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x)
        return (spectrum * (spectrum.abs() > 0.5)).abs()


def by_product() -> Claim:
    """Write it with the operators that have a translation for pairs, here a product with a mask."""
    return export("dynamo", ByProduct(), SAMPLES[0], dynamic_shapes=ROWS), Denoised(), SAMPLES


class OnPairs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_real(torch.fft.rfft(x))
        kept = pairs.norm(dim=-1, keepdim=True) > 0.5
        return torch.where(kept, pairs, 0.0).norm(dim=-1)


def on_pairs() -> Claim:
    """Leave complex numbers right after the transform: `view_as_real` costs nothing, and every operator takes floats."""
    return export("dynamo", OnPairs(), SAMPLES[0], dynamic_shapes=ROWS), Denoised(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"No ONNX function found for <OpOverload\(op='[\w.]+', overload='\w+'\)>\. Failure message: .*? for the complex-valued",
    breaks=breaks,
    fixes=(Fix("change the model", by_product), Fix("change the model", on_pairs)),
    threads=("pytorch/pytorch#126972", "pytorch/pytorch#121100", "onnx/onnx#4785"),
)
