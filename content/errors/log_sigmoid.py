"""-inf where PyTorch returns -20: `F.logsigmoid` is exported as the logarithm of a sigmoid

`logsigmoid` exists so that the sigmoid, which is zero to a float32 soon, need not be computed: for a negative x its answer is about x. The
exporter writes `Log(Sigmoid(x))`, which is what it was meant to avoid, and ONNX Runtime's sigmoid of -20 is zero already. The score of an
unlikely class becomes minus infinity.
"""

import torch
import torch.nn.functional as F
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class LogSigmoid(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.logsigmoid(x)


SAMPLES = [(torch.linspace(-40, 40, rows),) for rows in (9, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", LogSigmoid(), SAMPLES[0], dynamic_shapes=ROWS), LogSigmoid(), SAMPLES


class BySoftplus(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -F.softplus(-x)


def softplus() -> Claim:
    """Write `-softplus(-x)`, the same function: ONNX has an operator for it, which is computed with care."""
    return export("dynamo", BySoftplus(), SAMPLES[0], dynamic_shapes=ROWS), LogSigmoid(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` follows the definition that torch itself gives, which is safe."""
    return export("to_onnx", LogSigmoid(), SAMPLES[0], dynamic_shapes=ROWS), LogSigmoid(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[[\d, ]+\]: -inf where eager has -\d\S* \(\d+ of \d+ elements differ\)\n?",
    check="export inputs",
    breaks=breaks,
    op="log_sigmoid",
    fixes=(Fix("change the model", softplus), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#14830", "pytorch/pytorch#147508"),
)
