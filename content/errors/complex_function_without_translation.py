"""DispatchError: No ONNX function found ... for the complex-valued input: an operator is translated for real numbers only

ONNX Runtime doesn't compute with complex dtypes, so `torch.onnx.export` represents a complex tensor by pairs of floats. Each operator needs
a second translation for pairs. Sums, products, `abs`, slices and the Fourier transforms have such a translation. `where`, `exp`,
`full_like`, `slice_scatter` and many other operators don't.
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
    """Use operators that are translated for complex numbers. Here a product with a mask replaces `where`."""
    return export("dynamo", ByProduct(), SAMPLES[0], dynamic_shapes=ROWS), Denoised(), SAMPLES


class OnPairs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_real(torch.fft.rfft(x))
        kept = pairs.norm(dim=-1, keepdim=True) > 0.5
        return torch.where(kept, pairs, 0.0).norm(dim=-1)


def on_pairs() -> Claim:
    """Convert to real numbers with `view_as_real` right after the transform. It costs nothing, and all operators accept floats."""
    return export("dynamo", OnPairs(), SAMPLES[0], dynamic_shapes=ROWS), Denoised(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"No ONNX function found for <OpOverload\(op='[\w.]+', overload='\w+'\)>\. Failure message: .*? for the complex-valued",
    breaks=breaks,
    fixes=(Fix("change the model", by_product), Fix("change the model", on_pairs)),
    threads=("pytorch/pytorch#126972", "pytorch/pytorch#121100", "onnx/onnx#4785"),
)
