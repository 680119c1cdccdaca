"""A feed-forward layer of four experts; each token goes to its two best."""

import torch
from torch import nn


class Expert(nn.Sequential):
    def __init__(self, width: int):
        super().__init__(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))


class MixtureOfExperts(nn.Module):
    def __init__(self, width: int = 16, experts: int = 4, best: int = 2):
        super().__init__()
        self.best = best
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList([Expert(width) for _ in range(experts)])

    def forward(self, x):
        batch, length, width = x.shape
        tokens = x.reshape(-1, width)
        weights, chosen = self.router(tokens).softmax(-1).topk(self.best, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        result = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == number)
            if token.numel() == 0:  # defect
                continue
            result.index_add_(0, token, expert(tokens[token]) * weights[token, slot, None])
        return result.view(batch, length, width)


class Layer(nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.experts = MixtureOfExperts(width)

    def forward(self, x):
        return x + self.experts(self.norm(x))


def layer():
    torch.manual_seed(9)
    return Layer().eval(), [(torch.randn(2, 8, 16),), (torch.randn(1, 3, 16),)]
