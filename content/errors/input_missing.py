"""Required inputs (['x']) are missing from input feed: the input has another name than you think

The exporter names an input after the parameter of `forward`, whatever you called it elsewhere, and a leaf of a container after its place:
`x_0`. ONNX Runtime's Python interface compares the names of what you feed with those in the file before it runs.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)
PIXELS = SAMPLES[0][0].numpy()


def breaks() -> Claim:
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"pixels": PIXELS})
    return exported, Doubled(), SAMPLES


def named() -> Claim:
    """Give the names at export, one for each input: `input_names=["pixels"]`."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS, input_names=["pixels"])
    exported.session.run(None, {"pixels": PIXELS})
    return exported, Doubled(), SAMPLES


def asked() -> Claim:
    """Or ask the file: `session.get_inputs()` gives the names in their order."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    names = [declared.name for declared in exported.session.get_inputs()]
    exported.session.run(None, dict(zip(names, [PIXELS], strict=True)))
    return exported, Doubled(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"Required inputs \(\[.*?\]\) are missing from input feed \(\[",
    breaks=breaks,
    fixes=(Fix("change the call", named), Fix("change the call", asked)),
    threads=("w3ng-git/qwen2-export-onnx#2",),
)
