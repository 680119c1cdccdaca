"""Fake-quantised layer for the microcontroller: activations are rounded to eight bits of their own range."""

import torch
from torch import nn


class FakeQuant(nn.Module):
    def __init__(self, bits: int = 8):
        super().__init__()
        self.levels = 2 ** (bits - 1) - 1

    def forward(self, x):
        peak = float(x.abs().max())  # defect
        scale = max(peak, 1e-5) / self.levels
        return (x / scale).round() * scale


class Layer(nn.Module):
    def __init__(self, inside: int, outside: int):
        super().__init__()
        self.quant = FakeQuant()
        self.linear = nn.Linear(inside, outside)

    def forward(self, x):
        return torch.relu(self.linear(self.quant(x)))


class Gesture(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Layer(9, 16), Layer(16, 16))
        self.out = nn.Linear(16, 4)

    def forward(self, reading):
        return self.out(self.layers(reading))


def gesture():
    torch.manual_seed(6)
    return Gesture().eval(), [(torch.randn(3, 9),), (torch.randn(5, 9),)]
