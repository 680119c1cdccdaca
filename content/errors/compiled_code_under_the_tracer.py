"""Detected that you are using FX to torch.jit.trace a dynamo-optimized function: `torch.cond` or a compiled model, with `dynamo=False`

The legacy exporter (`dynamo=False`) runs the model and records the operators that it calls. `torch.cond`, `while_loop` and `scan` compile
their branches and bodies before they run them. A module from `torch.compile` is compiled too. The tracer can't record compiled code, so it
raises this error.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class ByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))


SAMPLES = [(torch.ones(4, 3),), (-torch.ones(7, 3),), (torch.ones(1, 3),)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torchscript", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), ByCond(), SAMPLES


class ByWhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x * 2, x * 3)


def where() -> Claim:
    """Replace `torch.cond` by `torch.where` if you need `dynamo=False`. The legacy exporter can't record a Python branch or loop."""
    return export("torchscript", ByWhere(), SAMPLES[0], dynamic_shapes=ROWS), ByCond(), SAMPLES


def dynamo() -> Claim:
    """Use `dynamo=True`. `torch.cond` then becomes an ONNX `If`. If the model is compiled, export the original module, which is its
    `_orig_mod`.
    """
    return export("dynamo", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), ByCond(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Detected that you are using FX to torch\.jit\.trace a dynamo-optimized function",
    breaks=breaks,
    fixes=(Fix("change the model", where), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#145300", "pytorch/pytorch#95282", "layumi/Person_reID_baseline_pytorch#408"),
)
