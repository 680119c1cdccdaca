"""Exporting a ScriptModule is not supported: the model comes from `torch.jit.script`, `torch.jit.trace` or `torch.jit.load`

A ScriptModule contains a TorchScript program, which runs in its own interpreter. `torch.export` captures Python code, and a ScriptModule
doesn't have any. Export the Python module from which it was made, or use an exporter that reads TorchScript. The same is true if only a
submodule is scripted.
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
    """Export the original Python module. Load the weights of the scripted module into it; the names are the same."""
    module = Doubled()
    module.load_state_dict(torch.jit.script(Doubled()).state_dict())
    return export("dynamo", module, SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`) if you don't have the source. It reads TorchScript, including branches and loops."""
    return export("torchscript", torch.jit.script(Doubled()), SAMPLES[0], dynamic_shapes=ROWS), Doubled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Exporting a ScriptModule is not supported",
    breaks=breaks,
    fixes=(Fix("change the call", from_source), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#155091", "pytorch/pytorch#173169"),
)
