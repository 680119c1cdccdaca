"""TypeError: unsupported format string passed to FakeTensor.__format__: a log line or an f-string prints a value of a tensor

`f"{loss:.3f}"` needs a number, and in the capture the tensor has none. Without the `:.3f` the line would pass, and say `FakeTensor(...)`.
Nothing that a log line says gets into the file, so it can be left out while exporting.
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
    """Put the line under `if not torch.compiler.is_exporting()`. Be sparing with it: what runs otherwise is then not what is exported."""
    return export("torch.export", LoggedUnlessExporting(), SAMPLES[0], dynamic_shapes=ROWS), Logged(), SAMPLES


def strict() -> Claim:
    """Pass `strict=True`: then the line is read, not run, and left out. `torch.onnx.export` tries this by itself."""
    return export("torch.export", Logged(), SAMPLES[0], dynamic_shapes=ROWS, strict=True), Logged(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"unsupported format string passed to FakeTensor\.__format__",
    breaks=breaks,
    fixes=(Fix("change the model", unless_exporting), Fix("change the call", strict)),
)
