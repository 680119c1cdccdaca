"""Spectral features of vibration measurements of any length, tapered with a Hann window as the old MATLAB code did."""

import numpy as np
import torch
from torch import nn


class Taper(nn.Module):
    def forward(self, signal):
        window = torch.from_numpy(np.hanning(signal.shape[-1])).float()  # defect
        return signal * window / window.mean()


class Vibration(nn.Module):
    def __init__(self, bands: int = 6):
        super().__init__()
        self.taper = Taper()
        self.filters = nn.Conv1d(1, bands, 15, padding=7, bias=False)
        self.head = nn.Sequential(nn.Linear(bands, 16), nn.GELU(), nn.Linear(16, 3))

    def forward(self, signal):
        signal = signal - signal.mean(-1, keepdim=True)
        bands = self.filters(self.taper(signal).unsqueeze(1))
        power = bands.square().mean(-1)
        return self.head(power.clamp(min=1e-8).log())


def vibration():
    torch.manual_seed(4)
    return Vibration().eval(), [(torch.randn(2, 128),), (torch.randn(4, 200),)]
