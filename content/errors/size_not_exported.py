"""Got invalid dimensions for input … Got: 4 Expected: 1: the model was exported without dynamic dimensions

Without `dynamic_shapes`, each dimension has the fixed size of the example. ONNX Runtime compares the sizes of its inputs with these before
it runs the model.
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
    """Mark the dimension as dynamic with `dynamic_shapes`. `({0: "rows"},)` has one entry per argument. Export with a size of 2 or more."""
    return export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=({0: "rows"},)), Doubled(), SAMPLES


def dynamic_axes() -> Claim:
    """Pass `dynamic_axes={"x": {0: "rows"}}` to the legacy exporter (`dynamo=False`). Its keys are the input names."""
    return export("torchscript", Doubled(), SAMPLES[0], dynamic_shapes=({0: "rows"},)), Doubled(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"INVALID_ARGUMENT : Got invalid dimensions for input: .*? for the following indices",
    breaks=breaks,
    fixes=(Fix("change the call", dynamic), Fix("another exporter", dynamic_axes)),
    threads=("microsoft/onnxruntime#2468", "microsoft/onnxruntime#5577"),
)
