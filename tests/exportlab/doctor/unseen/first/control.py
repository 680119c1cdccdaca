"""A balance controller: the policy sees the last three readings of the sensors."""

from collections import deque

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, sensors: int, motors: int):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3 * sensors, 32), nn.Tanh(), nn.Linear(32, motors), nn.Tanh())

    def forward(self, seen):
        return self.body(seen)


class Controller(nn.Module):
    """Call it once a tick with one reading; it answers with the torque of each motor."""

    def __init__(self, sensors: int = 6, motors: int = 2):
        super().__init__()
        self.policy = Policy(sensors, motors)
        self.register_buffer("limit", torch.full((motors,), 1.5))
        self.readings = deque([torch.zeros(1, sensors)] * 3, maxlen=3)

    def forward(self, reading):
        self.readings.append(reading)  # defect
        seen = torch.cat(list(self.readings), dim=-1)
        return self.policy(seen) * self.limit


def controller():
    torch.manual_seed(10)
    return Controller().eval(), [(torch.randn(1, 6),), (torch.randn(1, 6),), (torch.randn(1, 6),)]
