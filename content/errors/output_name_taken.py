"""Duplicate definition of name (softmax): output_names asks for a name that another value in the graph already has

The exporter gives the output the name you asked for, after every value inside has got one from the operator that makes it. Nothing looks
whether the name is taken. The file is written, and ONNX Runtime refuses to load it.
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
    """Ask for a name that no operator, input or weight has. One with a capital letter or a dot in it is safe."""
    return export("dynamo", Flipped(), SAMPLES[0], dynamic_shapes=ROWS, output_names=["Probabilities"]), Flipped(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` gives the name to the output, and another one to the value inside."""
    return export("to_onnx", Flipped(), SAMPLES[0], dynamic_shapes=ROWS, output_names=["softmax"]), Flipped(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"This is an invalid model\. Error: Duplicate definition of name \(.*?\)",
    breaks=breaks,
    fixes=(Fix("change the call", another_name), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#158094",),
)
