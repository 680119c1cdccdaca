"""Small image models with random weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


@case(dims={"batch": (2, 3, 1, 0), "height": (16, 24, 8, 9)}, topics=("layers", "dynamic shapes"))
def pooled_convnet() -> Declaration:
    """Does a convnet with pooling accept heights other than the export's?"""
    layers = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return nn.Sequential(*layers, *head), (tensor("batch", 3, "height", 16),)


@case(dims={"batch": (2, 3, 1, 0)}, topics=("layers", "reshape"))
def patch_embedding() -> Declaration:
    """Patches, a class token, positions, attention: does the start of a vision transformer keep a dynamic batch?"""

    class PatchEmbedding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 32, 8, stride=8)
            self.token, self.places = nn.Parameter(torch.randn(1, 1, 32)), nn.Parameter(torch.randn(1, 17, 32))
            self.norm, self.attention = nn.LayerNorm(32), nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, image: Tensor) -> Tensor:
            patches = self.patches(image).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(image.shape[0], -1, -1), patches], dim=1) + self.places
            y = self.norm(x)
            return x + self.attention(y, y, y, need_weights=False)[0]

    return PatchEmbedding(), (tensor("batch", 3, 32, 32),)
