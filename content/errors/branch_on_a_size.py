"""FrozenDimension: "rows" was asked to be dynamic but only rows > 4 is exported: an `if` on `x.shape[0]`

An `if` on `x.shape[0]` doesn't stop the capture: the example has a size, so the condition is evaluated and one branch is recorded.
torch.export stores the condition as a guard, which a `.pt2` file checks at run time. An ONNX model doesn't have guards, and
`torch.onnx.export` writes this one branch for all sizes.

`to_onnx` raises this error when it captures with torch.export. It does so if you request it, or if runs of the model at other sizes aren't
conclusive.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class BySize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 4:
            return x * 2
        return x * 3


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (6, 3, 9, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("to_onnx", BySize(), SAMPLES[0], dynamic_shapes=ROWS, capture="torch.export"), BySize(), SAMPLES


class BySizeAtRunTime(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        large = torch.full((), x.shape[0]) > 4
        return torch.cond(large, lambda x: x * 2, lambda x: x * 3, (x,))


def cond() -> Claim:
    """Convert the size to a tensor and use `torch.cond`. Both branches are then in the exported model, and the condition is evaluated at
    run time.
    """
    return export("to_onnx", BySizeAtRunTime(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


def accepted() -> Claim:
    """Accept the range with `accept_ranges` if you don't need other sizes. The exported model is right for the sizes in the message."""
    program = export("to_onnx", BySize(), SAMPLES[0], dynamic_shapes=ROWS, accept_ranges=("rows",), capture="torch.export")
    return program, BySize(), [sample for sample in SAMPLES if len(sample[0]) > 4]


def by_running() -> Claim:
    """Leave `capture` at its default. `to_onnx` then runs the model at other sizes and writes both branches."""
    return export("to_onnx", BySize(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"FrozenDimension: [^\n]* asked to be dynamic but only [^\n]* is exported: the test at [^\n]* chose one branch",
    breaks=breaks,
    fixes=(Fix("change the model", cond), Fix("change the call", by_running), Fix("change the call", accepted)),
    threads=("pytorch/pytorch#136216", "pytorch/pytorch#151582"),
    kin=r"conflicts between user-specified ranges(?![\s\S]*static shape of)|only .* is exported",
    advice="write the branch with torch.cond, or export one file for each case",
)
