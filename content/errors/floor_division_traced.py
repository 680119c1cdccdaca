"""dynamo=False: `n // 2` of negative integers is rounded towards zero, -1 where PyTorch returns -2

Python and PyTorch round `//` down. ONNX's `Div` of integers drops the fraction, which is the same for positive numbers only. The older
exporter writes `Div`, and nothing after it.
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
    """Take the remainder away first: of what can be divided without one, both kinds of rounding are the same."""
    return export("torchscript", HalvedExactly(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


def dynamo() -> Claim:
    """The newer exporter rounds down."""
    return export("dynamo", Halved(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+\]: -?\d+ where eager has -\d+ \(\d+ of \d+ elements differ\)\n?",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", exactly), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#78442", "onnx/onnx#4016"),
)
