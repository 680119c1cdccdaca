"""Survival of customers: a mixture of log-normals, asked for the log likelihood of a duration."""

import torch
from torch import nn
from torch.distributions import Categorical, LogNormal, MixtureSameFamily


class Trunk(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


class MixtureHead(nn.Module):
    def __init__(self, width, parts=3):
        super().__init__()
        self.weights = nn.Linear(width, parts)
        self.centres = nn.Linear(width, parts)
        self.spreads = nn.Linear(width, parts)

    def forward(self, hidden):
        parts = LogNormal(self.centres(hidden), nn.functional.softplus(self.spreads(hidden)) + 1e-3)  # defect
        return MixtureSameFamily(Categorical(logits=self.weights(hidden)), parts)


class Lifetime(nn.Module):
    def __init__(self, features=9):
        super().__init__()
        self.trunk = Trunk(features, 24)
        self.head = MixtureHead(24)

    def forward(self, customer, days):
        mixture = self.head(self.trunk(customer))
        return mixture.log_prob(days)


def churn():
    torch.manual_seed(0)
    return Lifetime().eval(), [(torch.randn(4, 9), torch.rand(4) * 90 + 1), (torch.randn(7, 9), torch.rand(7) * 300 + 1)]
