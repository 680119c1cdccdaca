"""Could not guard on data-dependent expression: a `while` loop on a tensor's value or on the number of remaining elements

During capture, tensors have shapes but no values, so torch.export can't evaluate a `while` condition on a value. For example, a loop that
ends when a list of boxes is empty runs a different number of times in each call. Write the loop as an operator, or use a constant number of
iterations.
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
    """Use `while_loop`. It becomes an ONNX `Loop`. The state has to keep its shape, so mark elements in a mask instead of removing them."""
    return export("dynamo", HalvedInALoop(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


class HalvedAtMost(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(16):
            x = torch.where(x.sum() > 1, x / 2, x)
        return x


def at_most() -> Claim:
    """Run a fixed number of iterations, and keep finished values with `torch.where`. Use this if you know an upper bound."""
    return export("dynamo", HalvedAtMost(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It runs the model, and writes the `while` as a `Loop`."""
    return export("to_onnx", Halved(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"data-dependent expression [^\n]* \(unhinted",
    op=r"\bwhile\b",
    breaks=breaks,
    fixes=(Fix("change the model", in_a_loop), Fix("change the model", at_most), Fix("another exporter", to_onnx)),
    threads=(),
    kin=r"Could not guard on data-dependent",
    advice="the loop ends on a value: use torch.while_loop, and mask elements instead of removing them",
)
