"""Error during constant folding for node 'node_split' (::SplitToSequence): `chunk` or `split` along a dynamic dimension

`chunk(2)` along a dynamic dimension becomes `SplitToSequence` with a length that is computed at run time. The optimiser tries to replace it
by `Split`, for which it needs to know the length. It tests whether the length or its shape is known. Here only the shape is known, so it
reads the rank of a missing value: `'NoneType' object has no attribute 'ndim'`.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Centred(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([part - part.mean(0) for part in x.chunk(2)])


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3).exp(),) for rows in (4, 7, 2)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Centred(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


class Sliced(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = (x.shape[0] + 1) // 2
        return torch.cat([part - part.mean(0) for part in (x[:half], x[half:])])


def sliced() -> Claim:
    """Write the parts as slices. A single row has one chunk but two slices, so decide which you need."""
    return export("dynamo", Sliced(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


def unoptimised() -> Claim:
    """Pass `optimize=False`. The file is larger, but ONNX Runtime optimises the model when it loads it."""
    return export("dynamo", Centred(), SAMPLES[0], dynamic_shapes=ROWS, optimize=False), Centred(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It computes the end of each part and writes slices."""
    return export("to_onnx", Centred(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


ERROR = KnownError(
    stage="optimiser",
    message=r"Error during constant folding for node '\w+' \(::SplitToSequence\)",
    breaks=breaks,
    fixes=(Fix("change the model", sliced), Fix("change the call", unoptimised), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxscript#2543", "microsoft/onnxscript#2550"),
)
