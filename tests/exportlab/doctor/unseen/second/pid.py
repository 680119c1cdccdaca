"""A learned feed-forward term on top of a PID controller, as it runs on the heater."""

import torch
from torch import nn


class Pid(nn.Module):
    def __init__(self, p: float = 0.8, i: float = 0.1, d: float = 0.05):
        super().__init__()
        self.gains = nn.Parameter(torch.tensor([p, i, d]))
        self.total = torch.zeros(1)
        self.last = None

    def forward(self, error):
        self.total = (self.total + error).clamp(-10, 10)  # defect
        slope = error - self.last if self.last is not None else torch.zeros_like(error)
        self.last = error
        p, i, d = self.gains
        return p * error + i * self.total + d * slope


class Heater(nn.Module):
    def __init__(self):
        super().__init__()
        self.pid = Pid()
        self.forward_term = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, target, measured):
        ahead = self.forward_term(torch.stack([target, measured], dim=-1)).squeeze(-1)
        return (ahead + self.pid(target - measured)).clamp(0, 5)


def heater():
    torch.manual_seed(5)
    return Heater().eval(), [(torch.tensor([20.0]), torch.tensor([18.5])), (torch.tensor([20.0]), torch.tensor([19.0]))]
