"""Twelve models as people write them, each with one defect at the line that says so; five of them are silent in some exporter."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def rows(*sizes: int, width: int = 4):
    torch.manual_seed(0)
    return [(torch.randn(size, width),) for size in sizes]


class RunningNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - self.mean
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)  # defect: running_norm
        return centred


def running_norm():
    return RunningNorm().eval(), rows(4, 7)


class LargeOrSmall(nn.Module):
    def __init__(self):
        super().__init__()
        self.large, self.small = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        batch, width = x.shape
        h = x * width
        if batch >= 5:  # defect: by_size
            h = self.large(h)
            h = torch.relu(h)
        else:
            h = self.small(h)
        return h + x


def by_size():
    torch.manual_seed(1)
    return LargeOrSmall().eval(), rows(6, 8, 3)


class Softened(nn.Module):
    def forward(self, x):
        """Scales by what the sizes say."""
        scale = 0.5 if len(x) > 4 and x.shape[1] < 16 else 2.0  # defect: ternary
        return x.tanh() * scale


def ternary():
    return Softened(), rows(6, 9, 2)


class Clipped(nn.Module):
    def __init__(self, limit: float = 10.0):
        super().__init__()
        self.limit = limit
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        y = self.head(x)
        if float(y.abs().max()) > self.limit:  # defect: early_return
            return y.clamp(-self.limit, self.limit)
        shift = y.mean()
        return y - shift


def early_return():
    torch.manual_seed(2)
    return Clipped(1.0).eval(), [(torch.randn(4, 4) * 9,), (torch.randn(7, 4) * 0.01,)]


class Noisy(nn.Module):
    def __init__(self, level: float):
        super().__init__()
        self.level = level

    def forward(self, x: Tensor, bias: float = 0.5):
        hidden = x.sigmoid()
        return hidden + self.level * torch.randn_like(hidden) - bias  # defect: noisy


def noisy():
    return Noisy(0.3), rows(4, 7)


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.query = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, cache):  # defect: cached
        made = self.key(x)[:, None]
        keys, values = cache.update(made, made, 0)
        weights = (self.query(x)[:, None] @ keys.transpose(2, 3)).softmax(-1)
        return (weights @ values)[:, 0], cache


def cached():
    from transformers import DynamicCache

    def filled(batch: int, past: int):
        cache = DynamicCache()
        cache.update(torch.randn(batch, 1, past, 8), torch.randn(batch, 1, past, 8), 0)
        return cache

    torch.manual_seed(3)
    return Attends().eval(), [(torch.randn(2, 1, 8), filled(2, 4)), (torch.randn(3, 1, 8), filled(3, 6))]


@torch.library.custom_op("twelve::huber", mutates_args=())
def huber(x: Tensor, delta: float) -> Tensor:
    small = x.abs() < delta
    return torch.where(small, 0.5 * x * x, delta * (x.abs() - 0.5 * delta))


@huber.register_fake
def _(x, delta):
    return torch.empty_like(x)


class Huber(nn.Module):
    def forward(self, x, y):
        return huber(x - y, 1.0).mean(-1)  # defect: custom_op


def custom_op():
    return Huber(), [(a, a.flip(0)) for (a,) in rows(4, 7)]


class RowByRow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.stack([self.layer(row).softmax(0) for row in x])  # defect: row_by_row


def row_by_row():
    torch.manual_seed(4)
    return RowByRow().eval(), rows(4, 7)


class InNumpy(nn.Module):
    def forward(self, x):
        array = x.detach().numpy()  # defect: in_numpy
        top = np.maximum(array, 0.0)
        return torch.from_numpy(np.exp(-top)).sum(-1)


def in_numpy():
    return InNumpy(), rows(4, 7)


class Tempered(nn.Module):
    def forward(self, x, temperature=1.0):  # defect: number
        return (x / temperature).softmax(-1)


def number():
    return Tempered(), [(x, t) for (x,), t in zip(rows(4, 7), (2.0, 3.0), strict=True)]


class PerBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(0.5, 2.0, 4)[:, None])

    def forward(self, x):
        whitened = F.batch_norm(x, torch.zeros(4), torch.ones(4), training=True)  # defect: per_batch
        return whitened * self.gain


def per_batch():
    return PerBatch(), [(x.unsqueeze(2) * torch.arange(1.0, 6),) for (x,) in rows(4, 7)]


class Normalised(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x[mask == 0] = 0.0  # defect: written
        return x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)


def written():
    return Normalised(), [(x, (x > 0).long()) for (x,) in rows(4, 7)]
