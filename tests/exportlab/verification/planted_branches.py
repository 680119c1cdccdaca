"""Models whose `forward` branches on values, which a trace burns in, and sound ones at which no probe may cry wolf."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Planted:
    """A model and one call of it as its author would write it down; `other` takes the other side where such a call is natural too."""

    module: nn.Module
    sample: tuple[Any, ...]
    other: tuple[Any, ...] | None = None

    @property
    def name(self) -> str:
        """The name of the model."""
        return type(self.module).__name__


class Clipped(nn.Module):
    """As gradients are clipped: even, around one."""

    def forward(self, x: Tensor) -> Tensor:
        norm = x.norm()
        return x / norm if norm > 1 else x


class Sparse(nn.Module):
    """Even, around one."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.abs().sum() > 1 else x * 3


class Repaired(nn.Module):
    """NaN is replaced where there is any."""

    def forward(self, x: Tensor) -> Tensor:
        if x.isnan().any():
            x = torch.nan_to_num(x)
        return x.cumsum(-1)


class Unsaturated(nn.Module):
    """Clamped where anything is infinite."""

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(-50, 50) if x.isinf().any() else x + 1


class Loud(nn.Module):
    """The threshold lies a hundred times above what the sample holds."""

    def forward(self, x: Tensor) -> Tensor:
        return x.tanh() * 100 if x.abs().max() > 300 else x


class Scaled(nn.Module):
    """As loaders of images do: 0 … 255 or 0 … 1."""

    def forward(self, x: Tensor) -> Tensor:
        return (x / 255 if x.max() > 1.5 else x) - 0.5


class Counted(nn.Module):
    """It counts the positive ones."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(0) if (x > 0).sum() > 3 else x.amax(0)


class Masked(nn.Module):
    """Something else where nothing is masked."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.sigmoid() if mask.all() else scores.masked_fill(~mask, -1e9).softmax(-1)


class NothingKept(nn.Module):
    """Zeros where all is masked."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if not mask.any():
            return torch.zeros_like(x[0])
        return (x * mask[:, None]).sum(0) / mask.sum().clamp(min=1) + 1


class Special(nn.Module):
    """Words from 90 on are special."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 4)

    def forward(self, ids: Tensor) -> Tensor:
        found = self.words(ids)
        return -found if ids.max() >= 90 else found


class Flat(nn.Module):
    """What does not vary is not divided by its deviation."""

    def forward(self, x: Tensor) -> Tensor:
        if x.var() < 1e-6:
            return torch.ones_like(x)
        return (x - x.mean()) / x.std()


class Symmetric(nn.Module):
    """Even: it asks whether x is its own mirror image, whatever the sign."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if torch.allclose(x, -x) else x + x.flip(-1)


class NonNegative(nn.Module):
    """A root, of sizes where a sign forbids it."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sqrt() if x.min() >= 0 else x.abs().sqrt() * 2


class Padded(nn.Module):
    """Word 0 is padding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(70, 4)

    def forward(self, ids: Tensor) -> Tensor:
        found = self.words(ids)
        return found * (ids != 0)[..., None] if (ids == 0).any() else found.mean(1, keepdim=True)


class Faint(nn.Module):
    """The average of the squares: even, and a threshold below what the sample holds."""

    def forward(self, x: Tensor) -> Tensor:
        return x if x.pow(2).mean() > 1e-4 else x * 1e3


class Lengthy(nn.Module):
    """An integer beside the tensor that it bounds."""

    def forward(self, x: Tensor, length: Tensor) -> Tensor:
        return (x.mean(1) if int(length.max()) == x.shape[1] else x.amax(1)) * length


def seeded(*shape: int) -> Tensor:
    """Return normally distributed numbers, always the same for a shape."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def planted() -> list[Planted]:
    """Return the models with a branch, always with the same weights and samples."""
    torch.manual_seed(0)
    x, rows = seeded(4, 6), seeded(5, 8)
    ids = torch.tensor([[3, 17, 42, 8], [5, 1, 2, 60]])
    some = torch.tensor([True, True, False, True])
    return [
        Planted(Clipped(), (x,), (x / 100,)),
        Planted(Sparse(), (x,), (x / 1000,)),
        Planted(Repaired(), (x,)),
        Planted(Unsaturated(), (x,)),
        Planted(Loud(), (x,), (x * 1e4,)),
        Planted(Scaled(), (x.sigmoid(),), (x.sigmoid() * 255,)),
        Planted(Counted(), (x,), (-x.abs(),)),
        Planted(Masked(), (x[:, :4], some)),
        Planted(NothingKept(), (x, some)),
        Planted(Special(), (ids,), (ids + 30,)),
        Planted(Flat(), (rows,)),
        Planted(Symmetric(), (x,), (torch.zeros(4, 6),)),
        Planted(NonNegative(), (x.abs(),), (x,)),
        Planted(Padded(), (ids,), (ids.where(ids > 2, 0),)),
        Planted(Faint(), (x,), (x * 1e-4,)),
        Planted(Lengthy(), (rows[None], torch.tensor([3])), (rows[None], torch.tensor([5]))),
    ]


class Layers(nn.Module):
    """Layers one after the other."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Pooled(nn.Module):
    """Zeros of a ReLU tie."""

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool1d(x.relu(), 2)


class Best(nn.Module):
    """Ties are to be expected: at zeros every word is the best."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.topk(3).values, x.argmax(-1)


class Sorted(nn.Module):
    """Values and their places."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        values, order = torch.sort(x, descending=True)
        return values, order


class Attention(nn.Module):
    """A row that attends to nothing is NaN in eager, or zero: whatever it says, the file has to say."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(8)
        return scores.masked_fill(~mask[:, None, :], torch.finfo(x.dtype).min).softmax(-1) @ v


class Recurrent(nn.Module):
    """An LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


class Looked(nn.Module):
    """Rows of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8)

    def forward(self, ids: Tensor) -> Tensor:
        return self.words(ids).mean(1)


class Summed(nn.Module):
    """A running sum."""

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(-1)


class Gated(nn.Module):
    """Both sides of a `torch.where` are in the file."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x > 2, x * 2, x - 1)


class Centred(nn.Module):
    """All digits cancel where the input is constant: only rounding is left, and it is divided by nearly nothing."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()


class Biased(nn.Module):
    """Its output holds the lowest number there is, as masks do."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.where(mask[:, None], x, torch.finfo(x.dtype).min) + x.mean()


class Exponential(nn.Module):
    """Overflows for large inputs, in eager as in the file."""

    def forward(self, x: Tensor) -> Tensor:
        return x.exp() / (1 + x.exp())


class Rounded(nn.Module):
    """Half a step away, one rounding decides for another integer."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * 10).round() / 10


class Cosine(nn.Module):
    """Directions, of zeros too."""

    def forward(self, x: Tensor) -> Tensor:
        return F.cosine_similarity(x, x.flip(0), dim=-1)


class Deep(nn.Module):
    """Rounding grows from layer to layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(24))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x).sin()
        return x


def sound() -> list[Planted]:
    """Return models that a trace gets right, always with the same weights and samples."""
    torch.manual_seed(0)
    x, images, steps, mask = seeded(4, 8), seeded(2, 3, 8, 8), seeded(2, 5, 8), torch.tensor([True, True, False, True])
    convolution = Layers(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    models = [
        Planted(Layers(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)), (x,)),
        Planted(convolution, (images,)),
        Planted(Pooled(), (steps,)),
        Planted(Best(), (x,)),
        Planted(Sorted(), (x,)),
        Planted(Layers(nn.Linear(8, 5), nn.Softmax(-1)), (x,)),
        Planted(Layers(nn.Linear(8, 5), nn.LayerNorm(5), nn.GELU()), (x,)),
        Planted(Attention(), (steps, torch.tensor([[True] * 5, [True, True, True, False, False]]))),
        Planted(Recurrent(), (steps,)),
        Planted(Looked(), (torch.randint(0, 50, (2, 6)),)),
        Planted(Summed(), (x,)),
        Planted(Gated(), (x,)),
        Planted(Centred(), (x,)),
        Planted(Biased(), (x, mask)),
        Planted(Exponential(), (x,)),
        Planted(Rounded(), (x,)),
        Planted(Cosine(), (x,)),
        Planted(Deep(), (seeded(4, 32),)),
    ]
    return [Planted(model.module.eval(), model.sample) for model in models]
