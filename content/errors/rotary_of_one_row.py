"""RotaryEmbedding: Inputs 'cos_cache' and 'sin_cache' are expected to have the same shape as input 'x' (opset 23)

At opset 23, `torch.onnx.export` writes the rotary position embedding of transformers as one `RotaryEmbedding` node. The model broadcasts
one row of positions to the whole batch. ONNX Runtime needs a row of positions for each row of the batch. The exported model therefore runs
with batch size 1 only.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Turned(nn.Module):
    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        speeds = 10000 ** -(torch.arange(4.0) / 4)
        angles = self.rows(positions, x)[..., None].float() * speeds
        both = torch.cat([angles, angles], -1)
        half = torch.cat([-x[..., 4:], x[..., :4]], -1)
        return x * both.cos().unsqueeze(1) + half * both.sin().unsqueeze(1)

    def rows(self, positions: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return positions


class TurnedByRow(Turned):
    def rows(self, positions: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return positions.expand(x.shape[0], -1)


SAMPLES = [(torch.randn(batch, 3, length, 8), torch.arange(length)[None]) for batch, length in ((2, 5), (3, 7), (1, 4))]
MOVING = ({0: "batch", 2: "length"}, {1: "length"})


def breaks() -> Claim:
    return export("dynamo", Turned(), SAMPLES[0], dynamic_shapes=MOVING, opset_version=23), Turned(), SAMPLES


def older() -> Claim:
    """Export with `opset_version=22`. It doesn't have `RotaryEmbedding`, so the model uses `Mul` and `Add`."""
    return export("dynamo", Turned(), SAMPLES[0], dynamic_shapes=MOVING, opset_version=22), Turned(), SAMPLES


def by_row() -> Claim:
    """Pass positions for each row of the batch. Pass `position_ids` of shape `(batch, length)` to a transformers model, or expand them."""
    return export("dynamo", TurnedByRow(), SAMPLES[0], dynamic_shapes=MOVING, opset_version=23), Turned(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It expands the positions in the exported model."""
    return export("to_onnx", Turned(), SAMPLES[0], dynamic_shapes=MOVING, opset_version=23), Turned(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"Inputs 'cos_cache' and 'sin_cache' are expected to have the same shape as input 'x', got \d+ and \d+",
    breaks=breaks,
    fixes=(Fix("change the model", by_row), Fix("change the call", older), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxruntime#29618",),
)
