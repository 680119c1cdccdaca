"""Key-point regression: soft-argmax over a heat map, with grids that are kept for each size."""

import torch
from torch import nn


class SoftArgmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.grids = {}

    def grid(self, height, width):
        if (height, width) not in self.grids:  # defect
            y = torch.linspace(0, 1, height)
            x = torch.linspace(0, 1, width)
            self.grids[height, width] = torch.stack(torch.meshgrid(y, x, indexing="ij"))
        return self.grids[height, width]

    def forward(self, heat):
        batch, points, height, width = heat.shape
        weights = heat.flatten(2).softmax(-1).view(batch, points, 1, height, width)
        return (weights * self.grid(height, width)).sum((-1, -2))


class Pose(nn.Module):
    def __init__(self, points: int = 5):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, points, 3, 1, 1))
        self.argmax = SoftArgmax()

    def forward(self, image):
        return self.argmax(self.body(image))


def pose():
    torch.manual_seed(2)
    return Pose().eval(), [(torch.rand(1, 3, 32, 48),), (torch.rand(2, 3, 40, 24),)]
