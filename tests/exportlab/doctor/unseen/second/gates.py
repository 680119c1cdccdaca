"""A network with learned feature gates: soft while it learns, hard when it is used."""

import torch
from torch import nn


class Gates(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.logits = nn.Parameter(torch.linspace(-2, 2, features))

    def forward(self, x):
        gate = torch.sigmoid(self.logits)
        if torch.is_grad_enabled():  # defect
            return x * gate
        return x * (gate > 0.5).to(x.dtype)


class Credit(nn.Module):
    def __init__(self, features: int = 8):
        super().__init__()
        self.gates = Gates(features)
        self.body = nn.Sequential(nn.Linear(features, 12), nn.SiLU(), nn.Linear(12, 1))

    def forward(self, applicant):
        return self.body(self.gates(applicant)).sigmoid().squeeze(-1)


def credit():
    torch.manual_seed(10)
    return Credit().eval(), [(torch.randn(4, 8),), (torch.randn(9, 8),)]
