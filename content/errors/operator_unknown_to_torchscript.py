"""UnsupportedOperatorError: Exporting the operator 'aten::linalg_inv' to ONNX opset version 17 is not supported (`dynamo=False`)

The legacy exporter (`dynamo=False`) doesn't have a translation for this operator, and PyTorch no longer adds any to it. A newer opset
doesn't help, although the message suggests it.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Inverse(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x)


SAMPLES = [(torch.eye(2).repeat(rows, 1, 1) * 2 + torch.linspace(0, 1, rows * 4).reshape(rows, 2, 2),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torchscript", Inverse(), SAMPLES[0], dynamic_shapes=ROWS), Inverse(), SAMPLES


class ByCofactors(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b, c, d = x.flatten(1).unbind(1)
        return torch.stack([d, -b, -c, a], 1).unflatten(1, (2, 2)) / (a * d - b * c)[:, None, None]


def by_cofactors() -> Claim:
    """Write the operator with simpler ones. Here it is the inverse of a 2×2 matrix by its formula."""
    return export("torchscript", ByCofactors(), SAMPLES[0], dynamic_shapes=ROWS), Inverse(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. `torch.onnx.export` with `dynamo=True` supports many operators that the legacy exporter doesn't, but not this one."""
    return export("to_onnx", Inverse(), SAMPLES[0], dynamic_shapes=ROWS), Inverse(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"Exporting the operator '?(?:aten::)?(?!fft_|stft|istft|view_as_complex|view_as_real|complex|polar)\w+'? to ONNX opset"
    r" version \d+ is not supported",
    breaks=breaks,
    fixes=(Fix("change the model", by_cofactors), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#136622",),
)
