"""Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor): `copy.deepcopy(x)`, `data_ptr()`, or a kernel of C++

The tensors of the capture have a shape and a type, and no memory. What reaches for the memory fails: a deep copy of a tensor, `data_ptr()`,
`memoryview`, a kernel from a library that is called like a plain function. Operators that torch knows do not.
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
    """`x.clone()` is the copy that torch knows."""
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
    """What is no function of torch, such as a kernel of your own, becomes an operator: its shapes are known, and nothing is called.
    For a file of ONNX it needs a translation besides."""
    return export("torch.export", HalvedByOperator(), SAMPLES[0], dynamic_shapes=ROWS), Halved(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Cannot access data pointer of Tensor \(e\.g\. FakeTensor, FunctionalTensor\)",
    breaks=breaks,
    fixes=(Fix("change the model", clone), Fix("change the model", custom_op)),
    threads=("Xilinx/brevitas#1396",),
)
