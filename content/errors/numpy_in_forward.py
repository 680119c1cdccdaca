""".numpy() is not supported for tensor subclasses: `forward` goes through numpy

The tensors of the capture have no memory that numpy could share. In its default mode, `torch.export` runs your Python as it is, and the
call of `.numpy()` reaches the tensor. In strict mode the code is read instead of run, and most functions of numpy are known by
their counterparts in torch.
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
    """Say it with torch. What numpy does before or after the model can stay outside of it."""
    return export("torch.export", PositiveInTorch(), SAMPLES[0], dynamic_shapes=ROWS), Positive(), SAMPLES


def strict() -> Claim:
    """Pass `strict=True`."""
    return export("torch.export", Positive(), SAMPLES[0], dynamic_shapes=ROWS, strict=True), Positive(), SAMPLES


def torch_onnx() -> Claim:
    """`torch.onnx.export` tries strict mode by itself when the default mode fails."""
    return export("dynamo", Positive(), SAMPLES[0], dynamic_shapes=ROWS), Positive(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"\.numpy\(\) is not supported for tensor subclasses",
    breaks=breaks,
    fixes=(Fix("change the model", in_torch), Fix("change the call", strict), Fix("another exporter", torch_onnx)),
    threads=("pytorch/pytorch#132559", "pytorch/pytorch#148779"),
)
