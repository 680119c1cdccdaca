"""The models that lesson 311 upgrades: four of a kind that many have, each with the sizes that it must take."""

import torch
from torch import nn
from torch.nn import functional as F

from exportlab import case, tensor


@case(dims={"batch": (4, 7, 1)})
def scorer():
    """Two linear layers: what everybody has."""
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), (tensor("batch", 8),)


@case(dims={"time": (6, 9, 1), "batch": (2, 4, 1)})
def tagger():
    """A recurrent layer over sentences of any length."""
    return nn.GRU(4, 5), (tensor("time", "batch", 4),)


@case(dims={"batch": (4, 7, 1)})
def shares():
    """Counts, as parts of the sum of their column."""

    class Shares(nn.Module):
        def forward(self, counts):
            return F.normalize(counts * 1.0, p=1.0, dim=0, eps=0.5)

    return Shares(), (tensor("batch", 3, dtype=torch.int64),)


@case(dims={"length": (6, 9, 1)})
def reader():
    """Attention with biases that grow with the distance."""

    class Reader(nn.Module):
        def forward(self, x):
            places = torch.arange(x.shape[2])
            slopes = 2.0 ** -torch.arange(1, x.shape[1] + 1)
            bias = -slopes[:, None, None] * (places[:, None] - places).abs()
            return F.scaled_dot_product_attention(x, x, x, attn_mask=bias)

    return Reader(), (tensor(2, 4, "length", 8),)
