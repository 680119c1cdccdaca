"""A float or int argument is not an input of the ONNX model: its value at export becomes a constant

torch.export treats arguments that aren't tensors as constants. The number becomes a constant in the graph, so the ONNX model has one input
less. ONNX Runtime doesn't expect this input, so you don't notice until you need another value. `verify` calls the exported model with the
arguments that you pass to the original, and reports each argument that became a constant.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor


SAMPLES = [(torch.ones(4, 3), 2.0), (torch.ones(7, 3), 5.0), (torch.ones(1, 3), 0.5)]
IN_TENSORS = [(x, torch.tensor(factor)) for x, factor in SAMPLES]


def breaks() -> Claim:
    return export("dynamo", Scaled(), SAMPLES[0], dynamic_shapes=({0: "rows"}, None)), Scaled(), SAMPLES


def tensor() -> Claim:
    """Pass the number as a 0-dimensional tensor. Do so at export and at run time. Most models need no other change."""
    return export("dynamo", Scaled(), IN_TENSORS[0], dynamic_shapes=({0: "rows"}, {})), Scaled(), IN_TENSORS


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`). It turns the number into an input."""
    return export("torchscript", Scaled(), SAMPLES[0], dynamic_shapes=({0: "rows"}, None)), Scaled(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"ValueError: argument leaf \d+ was exported as the constant \S+, called with",
    check="unseen size",
    breaks=breaks,
    fixes=(Fix("change the call", tensor), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#136179", "pytorch/pytorch#157734"),
)
