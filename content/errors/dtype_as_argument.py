"""Unsupported input type <class 'torch.dtype'>: an argument of `forward` is a dtype or a device

The arguments of a graph are tensors and numbers. A `torch.dtype` is neither, nor is a `torch.device`, and unlike a string it is not taken
for a constant either. It could not be an input of a file in any case: which types a node computes with is decided when it is
written.
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
    """Bind it: a module around yours that holds the dtype, and one file for each that you need."""
    module = CastTo(Cast(), torch.float16)
    return export("dynamo", module, TENSORS[0], dynamic_shapes=(ROWS,)), module, TENSORS


class CastLike(nn.Module):
    def forward(self, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return Cast()(x, like.dtype)


def of_a_tensor() -> Claim:
    """Or take it from a tensor that has it, which every call then has to bring."""
    samples = [(x, torch.zeros(1, dtype=torch.float16)) for (x,) in TENSORS]
    return export("dynamo", CastLike(), samples[0], dynamic_shapes=(ROWS, None)), CastLike(), samples


ERROR = KnownError(
    stage="capture",
    message=r"Unsupported input type <class 'torch\.(?:dtype|device)'>\. Export only supports pytree containers of basic types \(Tensor",
    breaks=breaks,
    fixes=(Fix("change the model", bound), Fix("change the model", of_a_tensor)),
)
