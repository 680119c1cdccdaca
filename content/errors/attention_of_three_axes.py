"""AssertionError: only 4D query, key, and value are supported: `scaled_dot_product_attention` with 3D tensors

PyTorch accepts tensors with two or more dimensions. Models with one head, and models that fold the heads into the batch, pass 3D tensors.
`torch.onnx.export` translates only 4D tensors: batch, heads, length, features.
"""

import torch
from torch import nn
from torch.nn import functional as F

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class OneHead(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x)


SAMPLES = [(torch.linspace(-2, 2, rows * 12).reshape(rows, 3, 4),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", OneHead(), SAMPLES[0], dynamic_shapes=ROWS), OneHead(), SAMPLES


class WithAnAxis(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[:, None]
        return F.scaled_dot_product_attention(x, x, x)[:, 0]


def with_axis() -> Claim:
    """Add a heads dimension of size 1 and remove it afterwards."""
    return export("dynamo", WithAnAxis(), SAMPLES[0], dynamic_shapes=ROWS), OneHead(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It accepts 3D tensors."""
    return export("to_onnx", OneHead(), SAMPLES[0], dynamic_shapes=ROWS), OneHead(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"only 4D query, key, and value are supported",
    breaks=breaks,
    fixes=(Fix("change the model", with_axis), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxscript#2558",),
)
