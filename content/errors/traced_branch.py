"""dynamo=False: wrong for other values, because tracing kept one branch of an `if` on a value

Tracing runs the model once and records which operators ran. The `if` is Python and leaves no record, only a `TracerWarning` that the
trace might not generalize. The file follows the branch of the example, whatever it is given.
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
    """`torch.where` computes both and picks. Best where both are cheap and neither can fail."""
    return export("torchscript", ByWhere(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


def scripted() -> Claim:
    """`torch.jit.script` reads the source instead of running it, and makes an `If` of the `if`. It takes a part of Python only."""
    return export("torchscript", torch.jit.script(ByValue()), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


class ByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))


def cond() -> Claim:
    """The newer exporter refuses the `if` and takes `torch.cond` in its place."""
    return export("dynamo", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^other values: output\S*\[[\d, ]+\]: \S+ where eager has \S+|TracerWarning: Converting a tensor to a Python boolean",
    check="other values",
    breaks=breaks,
    fixes=(Fix("change the model", where), Fix("change the call", scripted), Fix("another exporter", cond)),
    threads=("pytorch/pytorch#93579",),
)
