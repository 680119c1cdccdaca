"""GuardOnDataDependentSymNode at an `assert`: the capture has no values to check

Your model checks its input: `assert (x < 100).all()`, or `if not torch.isfinite(x).all(): raise …`. The capture has no values to check,
so it cannot know whether the check passes. Nothing of it could stay in the file: ONNX has no operator that raises.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export
from exportlab.patches import checks_passed


class Checked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
        return x.softmax(-1)


SAMPLES = [(torch.arange(rows * 3.0).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Checked(), SAMPLES[0], dynamic_shapes=ROWS), Checked(), SAMPLES


class CheckedInPython(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting() and not torch.isfinite(x).all():
            raise ValueError("not finite")
        return x.softmax(-1)


def only_in_python() -> Claim:
    """Check only when no export is going on. Python still checks; the file does not, so check before you call it."""
    return export("dynamo", CheckedInPython(), SAMPLES[0], dynamic_shapes=ROWS), Checked(), SAMPLES


def patched() -> Claim:
    """For a model that is not yours: `checks_passed` takes every line that only checks as passed, and says which it met."""
    with checks_passed():
        return export("dynamo", Checked(), SAMPLES[0], dynamic_shapes=ROWS), Checked(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` writes the file without the check, and names it in `report.limits`."""
    return export("to_onnx", Checked(), SAMPLES[0], dynamic_shapes=ROWS), Checked(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"on data-dependent expression Eq\(u\d+, 1\)[\s\S]*?call raised this error:\n.*\n *(assert |if .*\.(all|any)\()",
    breaks=breaks,
    fixes=(Fix("change the model", only_in_python), Fix("patch", patched), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#101255",),
)
