"""This is step 1/3 of exporting the model to ONNX: `torch.onnx.export` failed in the capture, and the cause is another error

`torch.onnx.export` wraps each error of torch.export in this text. The text only names the step that failed; steps 2 and 3 are the
decomposition and the translation. The cause is under "Exception summary", in full above the text, and in the `__cause__` of the exception.
Paste it into the search of {doc}`Known errors </docs/errors>`. In this example, the model passes a dynamic size to `json`. During capture
the size isn't an `int`, so `json` can't serialise it.
"""

import json
import logging

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

LOG = logging.getLogger(__name__)


class Logged(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        LOG.debug(json.dumps({"rows": x.shape[0]}))
        return x.softmax(0)


class LoggedInEager(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting():
            LOG.debug(json.dumps({"rows": x.shape[0]}))
        return x.softmax(0)


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Logged(), SAMPLES[0], dynamic_shapes=ROWS), Logged(), SAMPLES


def left_out() -> Claim:
    """Skip such code during the export, with `if not torch.compiler.is_exporting():`."""
    return export("dynamo", LoggedInEager(), SAMPLES[0], dynamic_shapes=ROWS), Logged(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"step 1/3 of",
    breaks=breaks,
    fixes=(Fix("change the model", left_out),),
    threads=("pytorch/pytorch#144382",),
    wraps=True,
)
