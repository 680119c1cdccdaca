"""Attention differs in the rows of the padding: a row whose mask is all False is zero in PyTorch, but an average in the file

With a boolean mask, `scaled_dot_product_attention` returns zeros for a row that may look at nothing. The file adds the smallest number
there is to every score of the row. They are then all alike, and softmax weighs all alike: the row becomes the mean of what it must not see.
Left-padded batches have such rows, so `last_hidden_state` of a decoder differs there, and only there.
"""

import torch
import torch.nn.functional as F
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Attention(nn.Module):
    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, attn_mask=seen)


def sample(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two sequences, of which the second starts with padding; each position sees those before it."""
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    kept = torch.ones(2, 1, 1, length, dtype=torch.bool)
    kept[1, ..., 0] = False
    return torch.arange(8.0 * length).reshape(2, 1, length, 4).cos(), causal & kept


SAMPLES = [sample(length) for length in (5, 8, 1)]
LENGTHS = ({2: "length"}, {2: "length", 3: "length"})


def breaks() -> Claim:
    return export("dynamo", Attention(), SAMPLES[0], dynamic_shapes=LENGTHS), Attention(), SAMPLES


class Zeroed(nn.Module):
    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        found = F.scaled_dot_product_attention(x, x, x, attn_mask=seen)
        return torch.where(seen.any(-1, keepdim=True), found, 0.0)


def zeroed() -> Claim:
    """Write the zeros yourself. Or ignore these rows in the comparison, as whoever uses a padded batch does anyway."""
    return export("dynamo", Zeroed(), SAMPLES[0], dynamic_shapes=LENGTHS), Attention(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` writes the zeros itself."""
    return export("to_onnx", Attention(), SAMPLES[0], dynamic_shapes=LENGTHS), Attention(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+, \d+, \d+, \d+\]: \S+ where eager has 0 \(\d+ of \d+ elements differ\)",
    check="export inputs",
    breaks=breaks,
    op="scaled_dot_product_attention",
    fixes=(Fix("change the model", zeroed), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxscript#2479", "pytorch/pytorch#103963", "onnx/onnx#8068"),
)
