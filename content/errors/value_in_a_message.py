"""TypeError: unsupported format string passed to FakeTensor.__format__: a log line or an f-string prints a tensor's value

`f"{loss:.3f}"` needs a number, but tensors don't have values during capture. Without `:.3f` the line runs, and prints `FakeTensor(...)`.
Log lines aren't exported, so you can skip them during the export.
"""

import logging

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

LOG = logging.getLogger(__name__)


class Logged(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        LOG.debug(f"mean {x.mean():.3f}")
        return x * 2


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torch.export", Logged(), SAMPLES[0], dynamic_shapes=ROWS), Logged(), SAMPLES


class LoggedUnlessExporting(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting():
            LOG.debug(f"mean {x.mean():.3f}")
        return x * 2


def unless_exporting() -> Claim:
    """Skip the line during the export, with `if not torch.compiler.is_exporting():`. Use this sparingly, because the exported code then
    differs from the code that you run.
    """
    return export("torch.export", LoggedUnlessExporting(), SAMPLES[0], dynamic_shapes=ROWS), Logged(), SAMPLES


def strict() -> Claim:
    """Pass `strict=True` to torch.export. Dynamo then analyses the line instead of running it, and drops it. `torch.onnx.export` tries this
    too.
    """
    return export("torch.export", Logged(), SAMPLES[0], dynamic_shapes=ROWS, strict=True), Logged(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"unsupported format string passed to FakeTensor\.__format__",
    breaks=breaks,
    fixes=(Fix("change the model", unless_exporting), Fix("change the call", strict)),
)
