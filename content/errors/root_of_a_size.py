"""DispatchError: No ONNX function found for function _sym_sqrt: `math.sqrt` or `round` of a dynamic size

During capture, the size of a dynamic dimension is a symbol. The first capture attempt of `torch.onnx.export` fails at `math.sqrt`. The
second one (`strict=True`) turns it into the node `torch._sym_sqrt`. `torch.onnx.export` can translate sums, products, powers, `floor` and
`ceil` of sizes, but not `sqrt` or `round`.
"""

import math
from typing import Any

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / math.sqrt(x.shape[1])


SAMPLES = [(torch.linspace(-1, 1, rows * width).reshape(rows, width),) for rows, width in ((4, 5), (7, 9), (1, 1))]
BOTH = ({0: "rows", 1: "width"},)


def breaks() -> Claim:
    return export("dynamo", Scaled(), SAMPLES[0], dynamic_shapes=BOTH), Scaled(), SAMPLES


class ByPower(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.shape[1] ** 0.5


def power() -> Claim:
    """Write the square root as a power: `size ** 0.5`. For `round(size / 2)`, write `(size + 1) // 2` if halves may be rounded up."""
    return export("dynamo", ByPower(), SAMPLES[0], dynamic_shapes=BOTH), Scaled(), SAMPLES


def root(size: Any) -> Any:
    from onnxscript import opset18 as op

    return op.Sqrt(size)


def translated() -> Claim:
    """Pass a translation for the function in `custom_translation_table`. The key is the function that the message names."""
    table = {torch._sym_sqrt: root}
    made = export("dynamo", Scaled(), SAMPLES[0], dynamic_shapes=BOTH, custom_translation_table=table)
    return made, Scaled(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"No ONNX function found for <(built-in )?function \w+.*?>\. Failure message: .*? for the real-valued",
    breaks=breaks,
    fixes=(Fix("change the model", power), Fix("change the call", translated)),
    threads=("pytorch/pytorch#139901", "pytorch/pytorch#166110"),
)
