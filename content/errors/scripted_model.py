"""Exporting a ScriptModule is not supported: the model comes from `torch.jit.script`, `torch.jit.trace` or `torch.jit.load`

A scripted module is a program of its own, run by another interpreter. `torch.export` follows Python, and there is none to follow. So a
scripted model, or a part of a model that is, has to be exported from its source, or by what understands such programs.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", torch.jit.script(Doubled()), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


def from_source() -> Claim:
    """Export the module of Python, with the weights that the scripted one holds: their names are the same."""
    module = Doubled()
    module.load_state_dict(torch.jit.script(Doubled()).state_dict())
    return export("dynamo", module, SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


def torchscript() -> Claim:
    """Where the source is lost: `dynamo=False` reads scripted programs, their branches and loops included."""
    return export("torchscript", torch.jit.script(Doubled()), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Exporting a ScriptModule is not supported",
    breaks=breaks,
    fixes=(Fix("change the call", from_source), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#155091", "pytorch/pytorch#173169"),
)
