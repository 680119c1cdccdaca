"""Could not guard on data-dependent expression: a `while` on a value of a tensor, or on how many elements are left

The capture runs your model with tensors that have shapes but lack values, and whether there is another iteration depends on a value. The
number of iterations of a loop that ends when a list of boxes is empty, or when a value is small enough, differs from call to call. The loop
has to become an operator, or its number of iterations a constant.
"""

import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Halved(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.sum() > 1:
            x = x / 2
        return x


SAMPLES = [(torch.ones(4, 3),), (-torch.ones(7, 3),), (torch.full((1, 3), 9.0),)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Halved(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


class HalvedInALoop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return while_loop(lambda x: x.sum() > 1, lambda x: (x / 2,), (x,))[0]


def in_a_loop() -> Claim:
    """Write it as `while_loop`, which becomes a `Loop`: the state keeps its shape, so mark elements in a mask in place of removing them."""
    return export("dynamo", HalvedInALoop(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


class HalvedAtMost(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(16):
            x = torch.where(x.sum() > 1, x / 2, x)
        return x


def at_most() -> Claim:
    """Where you know how many iterations are enough, run that many, and let `torch.where` keep what is done."""
    return export("dynamo", HalvedAtMost(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` runs the model, and writes the `while` as a `Loop`."""
    return export("to_onnx", Halved(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"data-dependent expression [^\n]* \(unhinted",
    op=r"\bwhile\b",
    breaks=breaks,
    fixes=(Fix("change the model", in_a_loop), Fix("change the model", at_most), Fix("another exporter", to_onnx)),
    threads=(),
    kin=r"Could not guard on data-dependent",
    advice="the loop ends on a value: use torch.while_loop, with a mask in place of a list that shrinks",
)
