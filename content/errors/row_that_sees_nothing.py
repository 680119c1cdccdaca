"""Attention output of padding rows: zero in PyTorch, an average in the ONNX model (a mask row that is all False)

With a boolean mask, `scaled_dot_product_attention` returns zeros for a row whose mask is all False. The exported model instead adds the
smallest float to each score of the row. The scores become equal, so softmax returns equal weights, and the output is the mean of the masked
positions. Left-padded batches have such rows. The `last_hidden_state` of a decoder then differs in these rows, but not in others.
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
    """Return two sequences, of which the second starts with padding, and a causal mask."""
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
    """Set these rows to zero with `torch.where`. You can also ignore them when you compare outputs, because padding rows aren't used."""
    return export("dynamo", Zeroed(), SAMPLES[0], dynamic_shapes=LENGTHS), Attention(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes the zeros."""
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
