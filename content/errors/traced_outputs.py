"""Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions: `forward` returns a number

`torch.jit.trace` records tensors. It can't record a number, a string, `None` or a custom object among the outputs. The legacy exporter
(`dynamo=False`) traces too. It drops such an output, or raises another error.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class WithCount(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x * 2, x.ndim


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torchscript", torch.jit.trace(WithCount(), SAMPLES[0]), SAMPLES[0]), WithCount(), SAMPLES


class WithCountAsTensor(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, torch.tensor(x.ndim)


def as_tensor() -> Claim:
    """Return the number as a tensor. Here `torch.tensor(x.ndim)` replaces `x.ndim`."""
    return export("torchscript", WithCountAsTensor(), SAMPLES[0], dynamic_shapes=ROWS), WithCountAsTensor(), SAMPLES


class First(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = WithCount()(x)[0]
        return result


def left_out() -> Claim:
    """Return only the tensors from a wrapper module. You know the number without running the model."""
    return export("torchscript", First(), SAMPLES[0], dynamic_shapes=ROWS), First(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions",
    breaks=breaks,
    fixes=(Fix("change the model", as_tensor), Fix("change the model", left_out)),
    threads=(),
)
