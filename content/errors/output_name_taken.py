"""Duplicate definition of name (softmax): `output_names` has a name that another value in the graph already uses

`torch.onnx.export` names the values in the graph after the operators that compute them. It then renames the outputs to `output_names`, but
doesn't check for conflicts. The export succeeds, and ONNX Runtime fails to load the model.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Flipped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.softmax(-1).flip(0)


SAMPLES = [(torch.arange(3.0 * rows).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Flipped(), SAMPLES[0], dynamic_shapes=ROWS, output_names=["softmax"]), Flipped(), SAMPLES


def another_name() -> Claim:
    """Choose a name that no operator, input or weight has. A name with a capital letter or a dot is safe."""
    return export("dynamo", Flipped(), SAMPLES[0], dynamic_shapes=ROWS, output_names=["Probabilities"]), Flipped(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It gives the name to the output, and renames the other value."""
    return export("to_onnx", Flipped(), SAMPLES[0], dynamic_shapes=ROWS, output_names=["softmax"]), Flipped(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"This is an invalid model\. Error: Duplicate definition of name \(.*?\)",
    breaks=breaks,
    fixes=(Fix("change the call", another_name), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#158094",),
)
