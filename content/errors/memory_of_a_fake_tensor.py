"""Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor): `copy.deepcopy(x)`, `data_ptr()` or a C++ kernel

During capture, tensors have a shape and a dtype, but no memory. Code that reads the memory fails: `copy.deepcopy` of a tensor,
`data_ptr()`, `memoryview`, or a C++ kernel that is called like an ordinary function. Operators that are registered with PyTorch don't fail.
"""

import copy
from collections.abc import Callable
from functools import cache

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Halved(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = copy.deepcopy(x)
        result[:, 0] /= 2
        return result


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Halved(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


class HalvedInAClone(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = x.clone()
        result[:, 0] /= 2
        return result


def clone() -> Claim:
    """Use `x.clone()` instead of `copy.deepcopy(x)`. torch.export can capture it."""
    return export("dynamo", HalvedInAClone(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


def halved(x: torch.Tensor) -> torch.Tensor:
    result = copy.deepcopy(x)
    result[:, 0] /= 2
    return result


@cache
def operator() -> Callable[[torch.Tensor], torch.Tensor]:
    registered = torch.library.custom_op("known_errors::halved", halved, mutates_args=())
    registered.register_fake(torch.empty_like)
    return registered


class HalvedByOperator(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return operator()(x)


def custom_op() -> Claim:
    """Register the function with `torch.library.custom_op`. This works for code that isn't made of PyTorch operators, such as your own
    kernel. `register_fake` describes the output shape, so the capture doesn't call the kernel. For ONNX, you also have to translate the
    operator.
    """
    return export("torch.export", HalvedByOperator(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Cannot access data pointer of Tensor \(e\.g\. FakeTensor, FunctionalTensor\)",
    breaks=breaks,
    fixes=(Fix("change the model", clone), Fix("change the model", custom_op)),
    threads=("Xilinx/brevitas#1396",),
)
