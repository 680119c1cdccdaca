"""A float or int argument is not an input of the file: its value at export is baked in

What is no tensor is part of the program to torch.export: the number is multiplied into the graph as a constant, and the file has one input
less. ONNX Runtime does not ask for what the file does not have, so nobody misses the number until another one is meant. `verify` calls
the file as you call the model, and says what is burnt in.
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
    """Give the number as a tensor without axes, at export and afterwards: most models take one without a change."""
    return export("dynamo", Scaled(), IN_TENSORS[0], dynamic_shapes=({0: "rows"}, {})), Scaled(), IN_TENSORS


def torchscript() -> Claim:
    """The older exporter, `dynamo=False`, makes an input of the number."""
    return export("torchscript", Scaled(), SAMPLES[0], dynamic_shapes=({0: "rows"}, None)), Scaled(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"ValueError: argument leaf \d+ was exported as the constant \S+, called with",
    check="unseen size",
    breaks=breaks,
    fixes=(Fix("change the call", tensor), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#136179", "pytorch/pytorch#157734"),
)
