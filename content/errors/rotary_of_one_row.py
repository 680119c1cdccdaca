"""RotaryEmbedding: Inputs 'cos_cache' and 'sin_cache' are expected to have the same shape as input 'x'

At opset 23 the exporter writes rotary positions as transformers has them, a cosine and a sine for every place, as one `RotaryEmbedding`. In
the model one row of positions serves the whole batch. ONNX Runtime wants a row of positions for each row of the batch, so the file runs for
a batch of one, and for no other.
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
    """Ask for opset 22, which has no such operator: the file multiplies and adds."""
    return export("dynamo", Turned(), SAMPLES[0], dynamic_shapes=MOVING, opset_version=22), Turned(), SAMPLES


def by_row() -> Claim:
    """Give every row its positions: pass `position_ids` of `(batch, length)` to a model of transformers, or expand them."""
    return export("dynamo", TurnedByRow(), SAMPLES[0], dynamic_shapes=MOVING, opset_version=23), Turned(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` expands them in the file."""
    return export("to_onnx", Turned(), SAMPLES[0], dynamic_shapes=MOVING, opset_version=23), Turned(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"Inputs 'cos_cache' and 'sin_cache' are expected to have the same shape as input 'x', got \d+ and \d+",
    breaks=breaks,
    fixes=(Fix("change the model", by_row), Fix("change the call", older), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxruntime#29618",),
)
