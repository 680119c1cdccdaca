"""`n // 2` of negative integers is rounded towards zero with `dynamo=False`: -1 where PyTorch returns -2

Python and PyTorch round `//` down. ONNX's `Div` of integers truncates, which makes a difference for negative results. The legacy exporter
(`dynamo=False`) writes `Div` without a correction.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Halved(nn.Module):
    def forward(self, n: torch.Tensor) -> torch.Tensor:
        return n // 2


SAMPLES = [(torch.arange(rows) - 4,) for rows in (9, 3, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torchscript", Halved(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


class HalvedExactly(nn.Module):
    def forward(self, n: torch.Tensor) -> torch.Tensor:
        return (n - n % 2) // 2


def exactly() -> Claim:
    """Subtract the remainder before the division. Both kinds of rounding are the same for a division without remainder."""
    return export("torchscript", HalvedExactly(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


def dynamo() -> Claim:
    """Use `dynamo=True`. It rounds down."""
    return export("dynamo", Halved(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+\]: -?\d+ where eager has -\d+ \(\d+ of \d+ elements differ\)\n?",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", exactly), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#78442", "onnx/onnx#4016"),
)
