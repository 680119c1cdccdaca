"""Models for the doctor: each with a known defect, the same put right as it advises, and factories that misbehave."""

# ruff: noqa: D101 - what each is for is told by its factory's name
from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

Made = tuple[nn.Module, list[Any]]


def rows(*sizes: int, width: int = 4) -> list[Any]:
    """A tensor of each of these lengths."""
    torch.manual_seed(0)
    return [(torch.randn(size, width),) for size in sizes]


class ByRows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] > 4 else x * 3  # defect: branch


class ByRowsInTheGraph(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.where(torch.ones_like(x[:, 0]).sum() > 4, 2.0, 3.0)


def branch() -> Made:
    return ByRows(), rows(6, 9, 2)


def branch_fixed() -> Made:
    return ByRowsInTheGraph(), rows(6, 9, 2)


class InASquare(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        side = math.isqrt(x.shape[0])
        return x[: side * side].reshape(side, side, -1).sum(0)


def square() -> Made:
    """No exporter has its size as one that moves."""
    return InASquare(), rows(4, 9, 16)


class Weighted(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # defect: twice
        return x + 2 * y


def twice() -> Made:
    return Weighted(), [(x, x) for (x,) in rows(4, 7)]


def twice_fixed() -> Made:
    return Weighted(), [(x, x.clone()) for (x,) in rows(4, 7)]


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)  # defect: state
        return x + self.calls


class CountingOutside(nn.Module):
    def forward(self, x: Tensor, calls: Tensor) -> tuple[Tensor, Tensor]:
        return x + calls + 1, calls + 1


def state() -> Made:
    return Counting(), rows(4, 7)


def state_fixed() -> Made:
    return CountingOutside(), [(x, torch.zeros(())) for (x,) in rows(4, 7)]


class ByValue(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:  # defect: value
            return x + 1
        return x - 1


class ByWhere(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x.sum() > 0, x + 1, x - 1)


class Checked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if not torch.isfinite(x).all():  # defect: check
            raise ValueError("not finite")
        return x.softmax(-1)


class CheckedInPython(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_exporting() and not torch.isfinite(x).all():
            raise ValueError("not finite")
        return x.softmax(-1)


def check() -> Made:
    return Checked(), rows(4, 7)


def check_fixed() -> Made:
    return CheckedInPython(), rows(4, 7)


def value() -> Made:
    return ByValue(), rows(4, 7)


def value_fixed() -> Made:
    return ByWhere(), rows(4, 7)


class OnTheDiagonal(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        copied = x.clone()
        copied.diagonal(dim1=1, dim2=2).add_(10)  # defect: diagonal
        return copied


class PlusADiagonal(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 10 * torch.eye(3)


def diagonal() -> Made:
    return OnTheDiagonal(), [(torch.randn(n, 3, 3),) for n in (4, 7)]


def diagonal_fixed() -> Made:
    return PlusADiagonal(), [(torch.randn(n, 3, 3),) for n in (4, 7)]


class Selected(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.masked_select(x, x > 0)  # defect: select


class Indexed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 0]


def select() -> Made:
    return Selected(), rows(4, 7)


def select_fixed() -> Made:
    return Indexed(), rows(4, 7)


class Halves(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2)  # defect: chunk
        return first.sum(0) + second.sum(0)


class Sliced(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        half = (x.shape[0] + 1) // 2
        return x[:half].sum(0) + x[half:].sum(0)


def chunk() -> Made:
    return Halves(), rows(4, 7)


def chunk_fixed() -> Made:
    return Sliced(), rows(4, 7)


class Moments(NamedTuple):
    mean: Tensor
    spread: Tensor


class InMoments(nn.Module):
    def forward(self, x: Tensor) -> Moments:  # defect: save
        return Moments(x.mean(0), x.amax(0) - x.amin(0))


class InATuple(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.mean(0), x.amax(0) - x.amin(0)


def save() -> Made:
    return InMoments(), rows(4, 7)


def save_fixed() -> Made:
    return InATuple(), rows(4, 7)


class Erf(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.erf(x) + 1  # defect: kernel


def kernel() -> Made:
    return Erf().double(), [(x.double(),) for (x,) in rows(4, 7)]


def kernel_fixed() -> Made:
    return Erf(), rows(4, 7)


class Projected(nn.Module):
    def __init__(self, **options: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True, **options)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]  # defect: lstm


def lstm() -> Made:
    torch.manual_seed(0)
    return Projected(proj_size=3), [(torch.randn(n, 6, 4),) for n in (2, 5)]


class ProjectedAfter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.project = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.project(self.lstm(x)[0])


def lstm_fixed() -> Made:
    torch.manual_seed(0)
    return ProjectedAfter(), [(torch.randn(n, 6, 4),) for n in (2, 5)]


def healthy() -> Made:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), rows(4, 7)


def raises() -> Made:
    raise RuntimeError("no weights here\nsecond line")


def garbage() -> int:
    return 3


def loops() -> Made:
    while True:
        time.sleep(0.01)


def allocates() -> Made:
    kept = []
    while True:
        kept.append(torch.ones(1 << 22))
        time.sleep(0.002)


def exits() -> Made:
    sys.exit(0)


HOSTILE = "<script>alert(1)</script>\x1b[31m\x07\u202e"


class Loud(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        print(HOSTILE)
        if torch.compiler.is_exporting():
            raise ValueError(HOSTILE)
        return x


def hostile() -> Made:
    Loud.__name__ = Loud.__qualname__ = HOSTILE
    return Loud(), rows(4, 7)


class While(nn.Module):
    """Does something only while it is exported."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            self.act()
        return x + 1


def sleeps() -> Made:
    return While(lambda: time.sleep(1000)), rows(4, 7)


def dies() -> Made:
    import os

    return While(lambda: os.kill(os.getpid(), 11)), rows(4, 7)


def model_exits() -> Made:
    return While(lambda: sys.exit(0)), rows(4, 7)


class Stuck(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        while True:
            time.sleep(0.01)


def stuck() -> Made:
    return Stuck(), rows(4, 7)


class OtherwiseWhenExported(nn.Module):
    """Does something and returns another answer while it is exported, or does that something alone."""

    def __init__(self, act: Callable[[], object], factor: float) -> None:
        super().__init__()
        self.act, self.factor = act, factor

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            self.act()
            return x * self.factor
        return x * 2


class Regularised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def regularised() -> Made:
    return Regularised(), rows(4, 7)


class Searching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        steps = next(steps for steps in itertools.count() if steps < 0)  # defect: hangs
        return x * steps


def hangs() -> Made:
    return Searching(), rows(4, 7)


class SearchingInAnExport(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        steps = 0
        while torch.compiler.is_exporting() and steps != 10:
            time.sleep(0.001)
            steps += 3  # defect: hangs in an export
        return x * steps


def hangs_in_an_export() -> Made:
    return SearchingInAnExport(), rows(4, 7)


class Writes(nn.Module):
    def forward(self, x: Tensor, kept: Tensor) -> Tensor:
        kept.add_(x)  # defect: argument
        return kept * 2


def argument() -> Made:
    """A file that is right in what it returns, and leaves the caller's tensor as it was."""
    return Writes(), [(x, x.clone()) for (x,) in rows(4, 7)]


@dataclass
class Scored:
    score: Tensor
    hidden: Tensor


class Returns(nn.Module):
    def forward(self, x: Tensor) -> Scored:
        hidden = x.tanh()
        return Scored(hidden.sum(1), hidden)  # defect: record


def record() -> Made:
    """A result that torch does not know as a container."""
    return Returns(), rows(4, 7)


def spread(x: Tensor) -> Tensor:
    squares = x.reshape(-1, 2, 2)
    return torch.linalg.svdvals(squares)  # defect: spread


class Spreads(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return spread(x.reshape(-1, 4))


def singular_values() -> Made:
    """What cannot be translated stands in a function that forward calls."""
    return Spreads(), [(torch.randn(n, 4),) for n in (4, 7)]


class Length(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / x.square().sum(-1, keepdim=True).sqrt()


def overflowing() -> Made:
    return Length().eval(), [(torch.full((rows, 16), 100.0, dtype=torch.float16),) for rows in (3, 5)]


class Cached(nn.Module):
    def forward(self, x: Tensor, cache: Any) -> Tensor:
        keys, values = cache.update(x, x, 0)
        return (x @ keys.mT).softmax(-1) @ values


def cached() -> Made:
    from transformers import DynamicCache

    samples = []
    for batch, past in ((2, 3), (3, 5)):
        cache = DynamicCache()
        cache.update(torch.randn(batch, 1, past, 4), torch.randn(batch, 1, past, 4), 0)
        samples.append((torch.randn(batch, 1, 1, 4), cache))
    return Cached(), samples
