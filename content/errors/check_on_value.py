"""GuardOnDataDependentSymNode: an `assert` or `raise` in `forward` that depends on the values of a tensor

The model checks its input, for example with `assert (x < 100).all()` or `if not torch.isfinite(x).all(): raise …`. Tensors have no values
during the capture, so the check can't be evaluated. It can't be exported either: ONNX doesn't have an operator that raises an error.
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
    """Skip the check during export with `torch.compiler.is_exporting()`. Python still checks, but the exported model doesn't, so check the
    inputs before you call it.
    """
    return export("dynamo", CheckedInPython(), SAMPLES[0], dynamic_shapes=ROWS), Checked(), SAMPLES


def patched() -> Claim:
    """Export within `checks_passed` if you can't change the model. It treats each line that only checks something as passed, and reports
    these lines.
    """
    with checks_passed():
        return export("dynamo", Checked(), SAMPLES[0], dynamic_shapes=ROWS), Checked(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It omits the check and lists it in `report.limits`."""
    return export("to_onnx", Checked(), SAMPLES[0], dynamic_shapes=ROWS), Checked(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"on data-dependent expression Eq\(u\d+, 1\)[\s\S]*?call raised this error:\n.*\n *(assert |if .*\.(all|any)\()",
    breaks=breaks,
    fixes=(Fix("change the model", only_in_python), Fix("patch", patched), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#101255",),
)
