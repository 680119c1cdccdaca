"""Self-attention whose scale grows with the length, so that long documents stay sharp (log-n scaling)."""

import math

import torch
from torch import nn

TRAINED = 512


class LogScaledAttention(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
        length = x.size(1)
        sharpness = math.log(length) / math.log(TRAINED)  # defect
        weights = (q @ k.transpose(-1, -2)) * sharpness / math.sqrt(q.size(-1))
        mixed = weights.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = LogScaledAttention(width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


def encoder():
    torch.manual_seed(4)
    return Encoder().eval(), [(torch.randn(2, 10, 32),), (torch.randn(3, 37, 32),)]
