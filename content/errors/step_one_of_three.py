"""This is step 1/3 of exporting the model to ONNX: the capture failed, and its own error is printed above

`torch.onnx.export` puts this text around whatever torch.export raised. It says where the export ended, and nothing of the reason: that
stands below, under "Exception summary", in full above the text, and is the `__cause__` of the error. Paste that into the box. Steps 2 and 3
are the decomposition and the translation. Here a library of Python's is handed a moving size: while torch.export captures, a size is no
`int`, and `json` does not know how to write it.
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
    """Leave out while exporting what is no part of the file: `torch.compiler.is_exporting()` says when that is."""
    return export("dynamo", LoggedInEager(), SAMPLES[0], dynamic_shapes=ROWS), Logged(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"step 1/3 of",
    breaks=breaks,
    fixes=(Fix("change the model", left_out),),
    threads=("pytorch/pytorch#144382",),
    wraps=True,
)
