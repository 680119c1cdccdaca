"""Wrong for other values with `dynamo=False`: tracing keeps one branch of an `if` on a tensor's value

The legacy exporter (`dynamo=False`) runs the model once and records the operators. The `if` is Python code and isn't recorded. You only get
a `TracerWarning` that the trace might not generalize. The exported model computes the example's branch for all inputs.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class ByValue(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x * 3


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torchscript", ByValue(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


class ByWhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x * 2, x * 3)


def where() -> Claim:
    """Use `torch.where`. It computes both branches and selects one. Prefer it if both are cheap and can't fail."""
    return export("torchscript", ByWhere(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


def scripted() -> Claim:
    """Use `torch.jit.script`. It compiles the source, and the `if` becomes an ONNX `If`. It supports a subset of Python."""
    return export("torchscript", torch.jit.script(ByValue()), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


class ByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))


def cond() -> Claim:
    """Use `torch.cond` and `torch.onnx.export` with its default, `dynamo=True`. This exporter raises an error for the `if`."""
    return export("dynamo", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^other values: output\S*\[[\d, ]+\]: \S+ where eager has \S+|TracerWarning: Converting a tensor to a Python boolean",
    check="other values",
    breaks=breaks,
    fixes=(Fix("change the model", where), Fix("change the call", scripted), Fix("another exporter", cond)),
    threads=("pytorch/pytorch#93579",),
)
