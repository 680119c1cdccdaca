"""Define the transformer block that several benchmarks measure."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A transformer block with four heads: attention and an MLP with residual connections. Input and output are `(batch, time, width)`."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        wide = 4 * width
        self.mlp = nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply attention and the MLP with residual connections."""
        chunks = self.qkv(self.before(x)).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in chunks)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))
