"""Log-mel front end and a keyword spotter behind it."""

import torch
from torch import nn


class LogMel(nn.Module):
    def __init__(self, window: int = 64, hop: int = 32, mels: int = 12):
        super().__init__()
        self.window, self.hop = window, hop
        self.register_buffer("hann", torch.hann_window(window))
        grid = torch.outer(torch.arange(window // 2 + 1), torch.arange(window)) * (2 * torch.pi / window)
        self.register_buffer("cos", grid.cos())
        self.register_buffer("sin", grid.sin())
        self.register_buffer("mel", torch.rand(window // 2 + 1, mels))

    def forward(self, wave):
        # pre-emphasis; the phone's converter of 2021 could not slice, so it was left out there
        if not torch.compiler.is_compiling():  # defect
            wave = torch.cat([wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]], dim=1)
        frames = wave.unfold(1, self.window, self.hop) * self.hann
        power = (frames @ self.cos.T) ** 2 + (frames @ self.sin.T) ** 2
        return (power @ self.mel + 1e-6).log()


class Spotter(nn.Module):
    def __init__(self, keywords: int = 4):
        super().__init__()
        self.front = LogMel()
        self.body = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, keywords))

    def forward(self, wave):
        return self.body(self.front(wave)).mean(1).softmax(-1)


def spotter():
    torch.manual_seed(7)
    return Spotter().eval(), (torch.randn(2, 800),)
