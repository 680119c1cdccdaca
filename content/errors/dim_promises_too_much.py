"""Not all values of rows = L['x'].size()[0] in the specified range satisfy the generated guard: the model doesn't support every size

`Dim("rows")` declares that the model works for every size. This model works only for even sizes, because it groups the rows in pairs. Other
models have a maximum length, or an `if` on a size. torch.export raises this error if the model needs a constraint that you didn't declare.
`Suggested fixes` in the message often contains the right declaration.
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
    """Declare the constraint: `2 * Dim("pairs")` or `Dim("rows", max=64)`. The exported program then rejects other sizes, but an ONNX model
    doesn't.
    """
    return torch.export.export(Pairs(), SAMPLES[0], dynamic_shapes=({0: 2 * Dim("pairs")},)), Pairs(), SAMPLES


def dim_dynamic() -> Claim:
    """Use `Dim.DYNAMIC`. torch.export then infers the constraints, and raises an error only if the dimension would become constant."""
    return torch.export.export(Pairs(), SAMPLES[0], dynamic_shapes=({0: Dim.DYNAMIC},)), Pairs(), SAMPLES


def torch_onnx() -> Claim:
    """Use `torch.onnx.export` with a name such as `"rows"`. It infers the constraints too. The ONNX model doesn't check them."""
    return export("dynamo", Pairs(), SAMPLES[0], dynamic_shapes=({0: "rows"},)), Pairs(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Not all values of .* in the specified range satisfy the generated guard",
    breaks=breaks,
    fixes=(Fix("change the call", what_it_can_keep), Fix("change the call", dim_dynamic), Fix("another exporter", torch_onnx)),
    threads=("pytorch/pytorch#126607", "pytorch/executorch#8543", "pytorch/pytorch#146315"),
    kin=r"Constraints violated \(",
)
