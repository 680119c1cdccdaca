"""Reshape: the input tensor cannot be reshaped to the requested shape, for a size that differs from the example's

The model pads the input only if it has to: `if n % 2:`. The example didn't need padding, and the export recorded only this branch. So the
graph doesn't contain the padding. The `Reshape` after it needs an even number of rows, and fails at run time.
"""

import torch
import torch.nn.functional as F
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class PairSums(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] % 2:
            x = F.pad(x, (0, 0, 0, 1))
        return x.reshape(-1, 2, 3).sum(1)


SAMPLES = [(torch.arange(3.0 * rows).reshape(rows, 3),) for rows in (4, 7, 6, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", PairSums(), SAMPLES[0], dynamic_shapes=ROWS), PairSums(), SAMPLES


class PaddedAlways(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x, (0, 0, 0, x.shape[0] % 2))
        return padded.reshape((x.shape[0] + 1) // 2, 2, 3).sum(1)


def padded_always() -> Claim:
    """Pad by a computed amount instead of branching. The amount can be 0, and the size stays a symbolic expression."""
    return export("dynamo", PaddedAlways(), SAMPLES[0], dynamic_shapes=ROWS), PairSums(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"The input tensor cannot be reshaped to the requested shape\. Input shape:\{[\d,]*\}, requested shape:\{[\d,-]*\}",
    breaks=breaks,
    fixes=(Fix("change the model", padded_always),),
    threads=("microsoft/onnxruntime#2779", "pytorch/pytorch#99516", "microsoft/onnxruntime#19280"),
    kin=r"running Reshape node|cannot be reshaped to the requested shape",
    advice="compute the size from x.shape instead of branching on it, and mark the dimension as dynamic",
)
