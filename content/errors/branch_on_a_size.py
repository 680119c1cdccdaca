"""FrozenDimension: "rows" was asked to be dynamic but only rows > 4 is exported: a test of a size chose one branch

An `if` on `x.shape[0]` is no error to the capture: the example has a size, so the test is decided, and one branch is recorded. What was
decided is kept as a guard. A `.pt2` checks its guards when it runs, an ONNX file has none, and `torch.onnx.export` writes the one branch
for all sizes. `to_onnx` reads the guards, and refuses, where it captures by torch.export: because you asked for that, or because runs of
the model do not show enough.
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
    """Make a tensor of the size, and a `torch.cond` of the `if`: then both branches are in the file, and the size is asked at run time."""
    return export("to_onnx", BySizeAtRunTime(), SAMPLES[0], dynamic_shapes=ROWS), BySize(), SAMPLES


def accepted() -> Claim:
    """If the other sizes never come, say so with `accept_ranges`: the file is written, and right for those of the message."""
    program = export("to_onnx", BySize(), SAMPLES[0], dynamic_shapes=ROWS, accept_ranges=("rows",), capture="torch.export")
    return program, BySize(), [sample for sample in SAMPLES if len(sample[0]) > 4]


def by_running() -> Claim:
    """Leave `capture` as it is: `to_onnx` runs the model at other sizes, and writes both branches."""
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
