"""One step of a diffusion sampler over mel frames."""

import math

import torch
from torch import nn


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        half = width // 2
        self.register_buffer("frequencies", torch.exp(-math.log(10000.0) * torch.arange(half) / half))
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, step):
        angles = step[:, None].float() * self.frequencies
        return self.mlp(torch.cat((angles.sin(), angles.cos()), -1))


class Denoiser(nn.Module):
    def __init__(self, mels, width=32):
        super().__init__()
        self.time = TimeEmbedding(width)
        self.enter = nn.Conv1d(mels, width, 3, padding=1)
        self.middle = nn.Conv1d(width, width, 3, padding=1)
        self.leave = nn.Conv1d(width, mels, 3, padding=1)

    def forward(self, mel, step):
        hidden = torch.relu(self.enter(mel)) + self.time(step)[:, :, None]
        return self.leave(torch.relu(self.middle(hidden)))


class Step(nn.Module):
    def __init__(self, mels=20, steps=50):
        super().__init__()
        beta = torch.linspace(1e-4, 0.05, steps)
        self.register_buffer("beta", beta)
        self.register_buffer("kept", torch.cumprod(1 - beta, 0))
        self.denoiser = Denoiser(mels)

    def forward(self, mel, step):
        beta, kept = self.beta[step][:, None, None], self.kept[step][:, None, None]
        guess = self.denoiser(mel, step)
        mean = (mel - beta / (1 - kept).sqrt() * guess) / (1 - beta).sqrt()
        noise = torch.randn_like(mel)  # defect
        more = (step > 0).float()[:, None, None]
        return mean + more * beta.sqrt() * noise


def sampler():
    torch.manual_seed(0)
    return Step().eval(), [(torch.randn(2, 20, 40), torch.tensor([17, 5])), (torch.randn(3, 20, 64), torch.tensor([3, 30, 8]))]
