"""Not all values of rows = L['x'].size()[0] in the specified range satisfy the generated guard: a `Dim` without its limits

`Dim("rows")` is a promise: any size at all. The model keeps it only for some, here for even ones, for it lays rows out in pairs. Other
models have a longest sequence, or test a size. The capture will not export a promise that the model cannot keep, and lists what it
would have to add. Under `Suggested fixes` it often says the right thing.
"""

import torch
from torch import nn
from torch.export import Dim

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Pairs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 2, 3).sum(1)


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 10, 6)]


def breaks() -> Claim:
    return torch.export.export(Pairs(), SAMPLES[0], dynamic_shapes=({0: Dim("rows")},)), Pairs(), SAMPLES


def what_it_can_keep() -> Claim:
    """Promise what is true: `2 * Dim("pairs")`, `Dim("rows", max=64)`. The program then refuses other sizes; an ONNX file does not."""
    return torch.export.export(Pairs(), SAMPLES[0], dynamic_shapes=({0: 2 * Dim("pairs")},)), Pairs(), SAMPLES


def dim_dynamic() -> Claim:
    """Promise nothing: with `Dim.DYNAMIC` the capture finds the limits itself, and raises only if the axis comes out constant."""
    return torch.export.export(Pairs(), SAMPLES[0], dynamic_shapes=({0: Dim.DYNAMIC},)), Pairs(), SAMPLES


def torch_onnx() -> Claim:
    """`torch.onnx.export` takes names, which promise nothing, and finds the limits itself. The file does not check them."""
    return export("dynamo", Pairs(), SAMPLES[0], dynamic_shapes=({0: "rows"},)), Pairs(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Not all values of .* in the specified range satisfy the generated guard",
    breaks=breaks,
    fixes=(Fix("change the call", what_it_can_keep), Fix("change the call", dim_dynamic), Fix("another exporter", torch_onnx)),
    threads=("pytorch/pytorch#126607", "pytorch/executorch#8543", "pytorch/pytorch#146315"),
    kin=r"Constraints violated \(",
)
