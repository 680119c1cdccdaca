"""-inf where PyTorch returns -20: `F.logsigmoid` is exported as `log(sigmoid(x))`

For a very negative x, `sigmoid(x)` underflows to 0 and its logarithm is minus infinity. `logsigmoid` avoids this: its result for such an x
is about x. But `torch.onnx.export` writes `Log(Sigmoid(x))`, and ONNX Runtime's sigmoid is already 0 at -20. The score of an unlikely class
becomes minus infinity.
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
    """Write `-F.softplus(-x)`. It is the same function, and ONNX has a numerically stable operator for it."""
    return export("dynamo", BySoftplus(), SAMPLES[0], dynamic_shapes=ROWS), LogSigmoid(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It follows PyTorch's own stable formula."""
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
