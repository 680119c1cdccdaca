"""SymbolicValueError: Unsupported: ONNX export of operator adaptive_avg_pool2d, input size not accessible (`dynamo=False`)

ONNX doesn't have an adaptive pooling operator. The legacy exporter (`dynamo=False`) writes an ordinary pooling and computes its window from
the input size at export time. It doesn't know this size if the height or width is dynamic. `Tensor.unfold` fails for the same reason.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x).flatten(1)


def image(height: int, width: int) -> torch.Tensor:
    return torch.linspace(-1, 1, height * width).reshape(1, 1, height, width).sin()


SAMPLES = [(image(height, width),) for height, width in ((4, 6), (7, 5), (2, 9))]
MOVING = ({2: "height", 3: "width"},)


def breaks() -> Claim:
    return export("torchscript", Pooled(), SAMPLES[0], dynamic_shapes=MOVING), Pooled(), SAMPLES


def part(x: torch.Tensor, axis: int, which: int) -> torch.Tensor:
    size = x.shape[axis]
    return x.narrow(axis, which * (size // 2), (size + 1) // 2)


class ByMeans(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.stack([part(x, 2, i).mean(2) for i in range(2)], 2)
        return torch.stack([part(rows, 3, i).mean(3) for i in range(2)], 3).flatten(1)


def by_means() -> Claim:
    """Write each output as the mean of its part. Part i of n starts at `i * size // n`. For `AdaptiveAvgPool2d(1)` this is `x.mean((2,
    3))`.
    """
    return export("torchscript", ByMeans(), SAMPLES[0], dynamic_shapes=MOVING), Pooled(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It computes the parts in the graph."""
    return export("to_onnx", Pooled(), SAMPLES[0], dynamic_shapes=MOVING), Pooled(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"Unsupported: ONNX export of operator [\w ]+, input size not accessible",
    breaks=breaks,
    fixes=(Fix("change the model", by_means), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#74034", "pytorch/pytorch#147720", "open-mmlab/mmsegmentation#1840"),
)
