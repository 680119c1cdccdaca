"""Error during constant folding for node 'node_split' (::SplitToSequence): `chunk` or `split` along an axis that moves

`chunk(2)` of an axis that moves becomes `SplitToSequence` with a length that is computed when the model runs. The optimiser wants to make
a plain `Split` of it, for which it has to know that length. It goes on where it knows the length or its shape, and here it knows the shape
only. Then it asks the length that is not there for its rank: `'NoneType' object has no attribute 'ndim'`.
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
    """Write the parts as slices. A single row has one chunk and two slices: say what you want of it."""
    return export("dynamo", Sliced(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


def unoptimised() -> Claim:
    """Leave the optimiser out. The file is larger; ONNX Runtime has an optimiser of its own, which it runs when it loads a file."""
    return export("dynamo", Centred(), SAMPLES[0], dynamic_shapes=ROWS, optimize=False), Centred(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` computes the ends of the parts, and slices."""
    return export("to_onnx", Centred(), SAMPLES[0], dynamic_shapes=ROWS), Centred(), SAMPLES


ERROR = KnownError(
    stage="optimiser",
    message=r"Error during constant folding for node '\w+' \(::SplitToSequence\)",
    breaks=breaks,
    fixes=(Fix("change the model", sliced), Fix("change the call", unoptimised), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxscript#2543", "microsoft/onnxscript#2550"),
)
