"""Detected that you are using FX to torch.jit.trace a dynamo-optimized function: `cond`, `while_loop` or a compiled model, dynamo=False

The older exporter runs the model and writes down what it sees. `torch.cond`, `while_loop` and `scan` compile their branches before they
run them, and so does a module that went through `torch.compile`. Compiled code cannot be watched in this way, and says so.
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
    """For the older exporter: compute both branches and pick. It has no way to record a choice or a loop of Python."""
    return export("torchscript", ByWhere(), SAMPLES[0], dynamic_shapes=ROWS), ByCond(), SAMPLES


def dynamo() -> Claim:
    """`torch.cond` is made for `dynamo=True`: there it becomes an `If`. Of a compiled model, export what is inside, its `_orig_mod`."""
    return export("dynamo", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), ByCond(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Detected that you are using FX to torch\.jit\.trace a dynamo-optimized function",
    breaks=breaks,
    fixes=(Fix("change the model", where), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#145300", "pytorch/pytorch#95282", "layumi/Person_reID_baseline_pytorch#408"),
)
