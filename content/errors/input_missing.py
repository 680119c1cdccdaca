"""Required inputs (['x']) are missing from input feed: the input of the ONNX model has another name

`torch.onnx.export` names an input after the parameter of `forward`, and the elements of a container by position, such as `x_0`. ONNX
Runtime's Python API compares the names in your feed with the inputs of the model before it runs it.
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
    """Set the names at export: `input_names=["pixels"]`. Pass one name for each input."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS, input_names=["pixels"])
    exported.session.run(None, {"pixels": PIXELS})
    return exported, Doubled(), SAMPLES


def asked() -> Claim:
    """Read the names from `session.get_inputs()`. It returns the inputs in order."""
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
