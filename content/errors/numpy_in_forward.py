""".numpy() is not supported for tensor subclasses: `forward` calls NumPy

During capture, tensors don't have memory that they could share with NumPy. By default, `torch.export` runs your Python code as it is, so
the call of `.numpy()` reaches such a tensor. With `strict=True`, Dynamo analyses the code instead and replaces most NumPy functions with
PyTorch operators.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Positive(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy().clip(0)) + 1


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torch.export", Positive(), SAMPLES[0], dynamic_shapes=ROWS), Positive(), SAMPLES


class PositiveInTorch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(min=0) + 1


def in_torch() -> Claim:
    """Replace NumPy with PyTorch functions. NumPy code at the start or the end of `forward` can also move out of the model."""
    return export("torch.export", PositiveInTorch(), SAMPLES[0], dynamic_shapes=ROWS), Positive(), SAMPLES


def strict() -> Claim:
    """Pass `strict=True` to torch.export."""
    return export("torch.export", Positive(), SAMPLES[0], dynamic_shapes=ROWS, strict=True), Positive(), SAMPLES


def torch_onnx() -> Claim:
    """Use `torch.onnx.export`. It falls back to strict mode if the default mode fails."""
    return export("dynamo", Positive(), SAMPLES[0], dynamic_shapes=ROWS), Positive(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"\.numpy\(\) is not supported for tensor subclasses",
    breaks=breaks,
    fixes=(Fix("change the model", in_torch), Fix("change the call", strict), Fix("another exporter", torch_onnx)),
    threads=("pytorch/pytorch#132559", "pytorch/pytorch#148779"),
)
