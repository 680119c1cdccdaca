"""Keyword spotting: clips are brought to one loudness by a percentile before the network."""

import numpy as np
import torch
from torch import nn


class Loudness(nn.Module):
    def __init__(self, percent=95.0):
        super().__init__()
        self.percent = percent

    def forward(self, wave):
        peak = np.percentile(np.abs(wave.numpy()), self.percent, axis=-1, keepdims=True)  # defect
        return wave / (torch.from_numpy(peak).float() + 1e-5)


class Frames(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bank = nn.Conv1d(1, width, 40, 20, bias=False)

    def forward(self, wave):
        return torch.log1p(self.bank(wave[:, None]).abs())


class Spotter(nn.Module):
    def __init__(self, width=24, words=6):
        super().__init__()
        self.loudness = Loudness()
        self.frames = Frames(width)
        self.net = nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.ReLU(), nn.Conv1d(width, words, 1))

    def forward(self, wave):
        return self.net(self.frames(self.loudness(wave))).mean(-1)


def keyword():
    torch.manual_seed(0)
    return Spotter().eval(), [(torch.randn(2, 400),), (torch.randn(3, 900) * 4,)]
