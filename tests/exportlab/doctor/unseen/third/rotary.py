"""A transformer block with rotary positions by complex numbers, as the first Llama has them."""

import torch
import torch.nn.functional as F
from torch import nn


def rotations(width, length, base=10000.0):
    frequencies = 1.0 / base ** (torch.arange(0, width, 2).float() / width)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x, turns):
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))  # defect
    return torch.view_as_real(pairs * turns[: x.shape[1], None]).flatten(3)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, turns):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).unbind(2)
        q, k = rotate(q, turns), rotate(k, turns)
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, words=50, width=32, heads=4):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.head = nn.Linear(width, words)
        self.turns = rotations(width // heads, 64)

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(x + self.attention(self.norm(x), self.turns))


def llama():
    torch.manual_seed(0)
    return Block().eval(), [(torch.randint(0, 50, (2, 6)),), (torch.randint(0, 50, (3, 11)),)]
