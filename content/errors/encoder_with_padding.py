"""`nn.TransformerEncoder` with `src_key_padding_mask`: the padding is zero in PyTorch, but not in the ONNX model

In inference, `nn.TransformerEncoder` removes the padding before it computes, with a nested tensor, and fills it with zeros afterwards. The
capture doesn't include this fast path. The exported model computes every position, including the padding. The other positions agree.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return self.encoder(x, src_key_padding_mask=padding(x, lengths))


def padding(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """True at the padding."""
    return torch.arange(x.shape[1]) >= lengths[:, None]


SAMPLES = [(torch.arange(16.0 * steps).reshape(2, steps, 8).cos(), torch.tensor([steps, steps - 1])) for steps in (5, 8, 2)]
STEPS = ({1: "steps"}, {})


def breaks() -> Claim:
    return export("dynamo", Encoder().eval(), SAMPLES[0], dynamic_shapes=STEPS), Encoder().eval(), SAMPLES


class Zeroed(Encoder):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return super().forward(x, lengths).masked_fill(padding(x, lengths)[..., None], 0.0)


def zeroed() -> Claim:
    """Set the padding to zero with `masked_fill`. If no sequence is as long as `x`, PyTorch also returns fewer steps: cut `x` to the
    longest sequence first.
    """
    return export("dynamo", Zeroed().eval(), SAMPLES[0], dynamic_shapes=STEPS), Encoder().eval(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes the zeros."""
    return export("to_onnx", Encoder().eval(), SAMPLES[0], dynamic_shapes=STEPS), Encoder().eval(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+, \d+, \d+\]: \S+ where eager has 0 \(\d+ of \d+ elements differ\)",
    check="export inputs",
    breaks=breaks,
    fixes=(Fix("change the model", zeroed), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#110557", "pytorch/pytorch#97111"),
)
