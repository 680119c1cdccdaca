"""Unsupported input type <class 'torch.dtype'>: an argument of `forward` is a dtype or a device

The inputs of a graph are tensors and numbers. torch.export treats strings as constants, but rejects a `torch.dtype` or a `torch.device`. A
dtype couldn't be an input of an ONNX model either, because the dtypes of its nodes are fixed at export.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Cast(nn.Module):
    def forward(self, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return x.to(dtype) + 1


TENSORS = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = {0: "rows"}


def breaks() -> Claim:
    samples = [(x, torch.float16) for (x,) in TENSORS]
    return export("dynamo", Cast(), samples[0], dynamic_shapes=(ROWS, None)), Cast(), samples


class CastTo(nn.Module):
    def __init__(self, module: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.module, self.dtype = module, dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x, self.dtype)


def bound() -> Claim:
    """Export a wrapper module that stores the dtype. Export one model for each dtype that you need."""
    module = CastTo(Cast(), torch.float16)
    return export("dynamo", module, TENSORS[0], dynamic_shapes=(ROWS,)), module, TENSORS


class CastLike(nn.Module):
    def forward(self, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return Cast()(x, like.dtype)


def of_a_tensor() -> Claim:
    """Pass a tensor with this dtype as an argument. The exported model then needs this additional input in every call."""
    samples = [(x, torch.zeros(1, dtype=torch.float16)) for (x,) in TENSORS]
    return export("dynamo", CastLike(), samples[0], dynamic_shapes=(ROWS, None)), CastLike(), samples


ERROR = KnownError(
    stage="capture",
    message=r"Unsupported input type <class 'torch\.(?:dtype|device)'>\. Export only supports pytree containers of basic types \(Tensor",
    breaks=breaks,
    fixes=(Fix("change the model", bound), Fix("change the model", of_a_tensor)),
)
