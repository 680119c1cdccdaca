"""One implicit step of a learned spring: forces by a network, the system solved for the new velocity."""

import torch
from torch import nn


class Material(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3))
        self.stiff = nn.Parameter(torch.eye(3) * 2)

    def forward(self, position, velocity):
        return self.net(torch.cat((position, velocity), -1)) - position @ self.stiff


class Step(nn.Module):
    def __init__(self, dt=0.02):
        super().__init__()
        self.dt = dt
        self.material = Material()
        self.register_buffer("floor", torch.tensor(0.0))

    def forward(self, position, velocity):
        force = self.material(position, velocity)
        velocity = velocity + self.dt * force
        moved = position + self.dt * velocity
        if moved[..., 2].min() < self.floor:  # defect
            velocity = velocity * torch.tensor([0.9, 0.9, -0.5])
            moved = torch.stack((moved[..., 0], moved[..., 1], moved[..., 2].clamp(min=0.0)), -1)
        return moved, velocity


class Rollout(nn.Module):
    def __init__(self, steps=3):
        super().__init__()
        self.step = Step()
        self.steps = steps

    def forward(self, position, velocity):
        for _ in range(self.steps):
            position, velocity = self.step(position, velocity)
        return position, velocity


def spring():
    torch.manual_seed(0)
    above = (torch.rand(2, 8, 3) + 1, torch.randn(2, 8, 3) * 0.1)
    below = (torch.rand(3, 5, 3) - 0.2, torch.randn(3, 5, 3))
    return Rollout().eval(), [above, below]
