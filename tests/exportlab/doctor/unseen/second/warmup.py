"""Camera exposure: the first frames after power-on are trusted less."""

import torch
from torch import nn

frames = 0


def trust():
    """How much of the estimate is used: it grows over the first eight frames."""
    global frames
    frames += 1  # defect
    return min(frames / 8, 1.0)


class Exposure(nn.Module):
    def __init__(self):
        super().__init__()
        self.stats = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.head = nn.Linear(8, 1)
        self.register_buffer("default", torch.tensor(0.5))

    def forward(self, frame):
        x = torch.relu(self.stats(frame))
        pooled = torch.cat([x.mean((-1, -2)), x.amax((-1, -2))], dim=-1)
        wanted = self.head(pooled).sigmoid().squeeze(-1)
        share = trust()
        return share * wanted + (1 - share) * self.default


def exposure():
    torch.manual_seed(11)
    return Exposure().eval(), [(torch.rand(1, 3, 16, 16),), (torch.rand(2, 3, 16, 16),)]
