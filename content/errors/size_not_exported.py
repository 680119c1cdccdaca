"""Got invalid dimensions for input … Got: 4 Expected: 1: the file was exported for one size

Without `dynamic_shapes` every axis is a number, that of the example. ONNX Runtime compares the numbers before it runs anything.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

SAMPLES = [(torch.ones(rows, 3),) for rows in (2, 4, 1, 0)]


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def breaks() -> Claim:
    return export("dynamo", Doubled(), SAMPLES[0]), Doubled(), SAMPLES


def dynamic() -> Claim:
    """Name the axes that move: `dynamic_shapes=({0: "rows"},)`, one entry for each argument. Export with a size of 2 or more."""
    return export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=({0: "rows"},)), Doubled(), SAMPLES


def dynamic_axes() -> Claim:
    """The older exporter calls them `dynamic_axes={"x": {0: "rows"}}`, by the names of the inputs."""
    return export("torchscript", Doubled(), SAMPLES[0], dynamic_shapes=({0: "rows"},)), Doubled(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"INVALID_ARGUMENT : Got invalid dimensions for input: .*? for the following indices",
    breaks=breaks,
    fixes=(Fix("change the call", dynamic), Fix("another exporter", dynamic_axes)),
    threads=("microsoft/onnxruntime#2468", "microsoft/onnxruntime#5577"),
)
