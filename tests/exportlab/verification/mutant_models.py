"""Twenty models whose exported files are changed, to see whether `verify` notices; not here: the changes (mutants)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Arguments = tuple[Any, ...]
SUBJECTS: list[Callable[[], Subject]] = []
BATCH = ({0: "batch"},)
BATCH_TIME = ({0: "batch", 1: "time"},)


@dataclass(frozen=True)
class Subject:
    """A model, how it is exported, and calls of it.

    `samples` are what an author would give at once; `advised` are those that a report may ask for besides.
    Integers that it takes lie below `words`.
    """

    module: nn.Module
    samples: tuple[Arguments, ...]
    exporter: str = "to_onnx"
    dynamic_shapes: Any = None
    words: int = 10
    advised: tuple[Arguments, ...] = ()


def subject(factory: Callable[[], Subject]) -> Callable[[], Subject]:
    """Register a factory of one of the twenty."""
    SUBJECTS.append(factory)
    return factory


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Return normally distributed numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(high: int, *shape: int) -> Tensor:
    """Return integers from 0 up to `high`, not included."""
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(0))


class Model(nn.Module):
    """Computes what a function says, with the layers that it is given by name."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Any:
        return self.function(self, x) if other is None else self.function(self, x, other)


@subject
def mlp() -> Subject:
    """Two layers and a residual."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Tanh())
    return Subject(model, ((numbers(4, 8),), (numbers(3, 8, seed=1),)), dynamic_shapes=BATCH)


@subject
def convolution() -> Subject:
    """Convolution, batch norm, pooling: an image to classes."""
    layers = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.Hardswish()
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
    return Subject(model, ((numbers(2, 3, 12, 12),), (numbers(3, 3, 12, 12, seed=1),)), "dynamo", BATCH)


def attended(model: Any, x: Tensor, mask: Tensor) -> Tensor:
    """One block of a transformer; `mask` is true where a position may be seen."""
    q, k, v = model.qkv(model.first(x)).chunk(3, -1)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~mask, -1e9)
    x = x + model.out(scores.softmax(-1) @ v)
    return x + model.down(F.gelu(model.up(model.second(x))))


def block(function: Callable[..., Any]) -> Model:
    """Return a model with the layers of one transformer block of width 8."""
    sizes = {"qkv": (8, 24), "out": (8, 8), "up": (8, 16), "down": (16, 8)}
    return Model(function, first=nn.LayerNorm(8), second=nn.LayerNorm(8), **{name: nn.Linear(*size) for name, size in sizes.items()})


@subject
def causal_block() -> Subject:
    """Each position sees those before it."""

    def forward(model: Any, x: Tensor) -> Tensor:
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return attended(model, x, seen)

    return Subject(block(forward), ((numbers(2, 5, 8),), (numbers(3, 7, 8, seed=1),)), "dynamo", BATCH_TIME)


@subject
def padded_block() -> Subject:
    """Positions that are padding are seen by none; the natural sample has none of them."""

    def forward(model: Any, x: Tensor, mask: Tensor) -> Tensor:
        return attended(model, x, mask[:, None, :])

    whole, short = torch.ones(2, 5, dtype=torch.bool), torch.arange(7) < torch.tensor([[7], [4], [5]])
    advised = ((numbers(3, 7, 8, seed=1), short),)
    samples = ((numbers(2, 5, 8), whole), (numbers(3, 7, 8, seed=1), torch.ones(3, 7, dtype=torch.bool)))
    return Subject(block(forward), samples, "to_onnx", BATCH_TIME * 2, advised=advised)


@subject
def top_p() -> Subject:
    """The likeliest words, until they hold nine tenths of the probability together."""

    def forward(model: Any, ids: Tensor) -> tuple[Tensor, Tensor]:
        x = model.norm(model.embed(ids).mean(1))
        ranked, order = model.head(x).softmax(-1).sort(-1, descending=True)
        return ranked[:, :20] * (ranked[:, :20].cumsum(-1) < 0.9), order[:, :20]

    model: Any = Model(forward, embed=nn.Embedding(400, 16), norm=nn.LayerNorm(16), head=nn.Linear(16, 400))
    nn.init.normal_(model.embed.weight, std=0.02)
    nn.init.normal_(model.head.weight, std=0.02)
    return Subject(model, ((integers(400, 4, 6),), (integers(400, 2, 9),)), "dynamo", BATCH_TIME, words=400)


@subject
def top_k() -> Subject:
    """Scores at a temperature; those below the fifth are struck out."""

    def forward(model: Any, scores: Tensor) -> Tensor:
        fifth = (scores / 0.7).topk(5, -1).values[:, -1:]
        return (scores / 0.7).masked_fill(scores / 0.7 < fifth, float("-inf")).softmax(-1)

    return Subject(Model(forward), ((numbers(4, 50),), (numbers(3, 50, seed=1),)), dynamic_shapes=BATCH)


@subject
def vocabulary() -> Subject:
    """A softmax over twenty thousand words: every output is small."""

    def forward(model: Any, ids: Tensor) -> Tensor:
        return model.head(model.embed(ids)[:, -1]).softmax(-1)

    model = Model(forward, embed=nn.Embedding(50, 8), head=nn.Linear(8, 20_000))
    return Subject(model, ((integers(50, 2, 4),), (integers(50, 3, 6),)), "to_onnx", BATCH_TIME, words=50)


@subject
def norms() -> Subject:
    """Layer norm, group norm and a root mean square by hand."""

    def forward(model: Any, x: Tensor) -> Tensor:
        y = model.group(model.layer(x)[..., None])[..., 0]
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * model.gain(torch.tensor(1))

    model = Model(forward, layer=nn.LayerNorm(8), group=nn.GroupNorm(2, 8), gain=nn.Embedding(3, 8))
    return Subject(model, ((numbers(4, 8),), (numbers(3, 8, seed=1),)), "dynamo", BATCH)


@subject
def lstm() -> Subject:
    """A recurrent network of two layers."""
    model = Model(lambda model, x: model.cell(x)[0][:, -1], cell=nn.LSTM(6, 5, 2, batch_first=True))
    return Subject(model, ((numbers(2, 7, 6),), (numbers(3, 7, 6, seed=1),)), "to_onnx", BATCH)


@subject
def gru() -> Subject:
    """A recurrent network in both directions, traced."""
    cell = nn.GRU(6, 5, bidirectional=True, batch_first=True)
    model = Model(lambda model, x: model.head(model.cell(x)[0]), cell=cell, head=nn.Linear(10, 2))
    return Subject(model, ((numbers(2, 7, 6),), (numbers(2, 4, 6, seed=1),)), "torchscript", ({1: "time"},))


@subject
def gate() -> Subject:
    """Where a signal is loud it is compressed, where it is faint it is silenced."""

    def forward(model: Any, x: Tensor) -> Tensor:
        loud = torch.where(x.abs() > 6, x.sign() * (6 + (x.abs() - 6) / 4), x)
        return torch.where(x.abs() < 0.01, 0.0, loud).clamp(-20, 20)

    return Subject(Model(forward), ((numbers(2, 30),), (numbers(3, 30, seed=1),)), "dynamo", BATCH)


@subject
def bag() -> Subject:
    """Words averaged, where padding does not count."""

    def forward(model: Any, ids: Tensor) -> Tensor:
        real = (ids != 0)[..., None].float()
        return model.head((model.words(ids) * real).sum(1) / real.sum(1).clamp(min=1.0))

    model = Model(forward, words=nn.Embedding(60, 8), head=nn.Linear(8, 3))
    full = integers(59, 3, 7) + 1
    return Subject(model, ((full,), (full[:2, :4],)), "to_onnx", BATCH_TIME, words=60, advised=((full * (full % 3 > 0),),))


@subject
def quantile() -> Subject:
    """Values beyond the ninth decile are cut off, the rest is scaled to 0 … 1."""

    def forward(model: Any, x: Tensor) -> Tensor:
        ranked = x.sort(-1).values
        low, high = ranked[:, 1:2], ranked[:, 8:9] * 0.7 + ranked[:, 9:10] * 0.3
        return (torch.minimum(torch.maximum(x, low), high) - low) / (high - low).clamp(min=1e-3)

    return Subject(Model(forward), ((numbers(4, 10),), (numbers(3, 10, seed=1),)), dynamic_shapes=BATCH)


@subject
def positions() -> Subject:
    """Sine and cosine of the position, added to words."""

    def forward(model: Any, ids: Tensor) -> Tensor:
        rate = torch.exp(torch.arange(0, 8, 2) * (-math.log(10_000.0) / 8))
        angle = torch.arange(ids.shape[1])[:, None] * rate
        return model.head(model.words(ids) * 8**0.5 + torch.cat([angle.sin(), angle.cos()], -1))

    model = Model(forward, words=nn.Embedding(40, 8), head=nn.Linear(8, 8))
    return Subject(model, ((integers(40, 2, 5),), (integers(40, 3, 9),)), "dynamo", BATCH_TIME, words=40)


@subject
def rotary() -> Subject:
    """Queries and keys turned by their positions."""

    def turned(x: Tensor, positions: Tensor) -> Tensor:
        angle = positions[..., None] * 100.0 ** -(torch.arange(0, 8, 2) / 8)
        a, b = x[..., ::2], x[..., 1::2]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward(model: Any, x: Tensor, positions: Tensor) -> Tensor:
        return turned(model.q(x), positions) @ turned(model.k(x), positions).transpose(-1, -2)

    model = Model(forward, q=nn.Linear(8, 8), k=nn.Linear(8, 8))
    samples = ((numbers(2, 5, 8), torch.arange(5).expand(2, 5)), (numbers(3, 7, 8, seed=1), torch.arange(7).expand(3, 7)))
    return Subject(model, samples, "to_onnx", BATCH_TIME * 2, words=50)


@subject
def condition() -> Subject:
    """A `torch.cond`: large inputs are scaled down, others pass a layer."""

    def forward(model: Any, x: Tensor) -> Tensor:
        large = x.abs().amax() > 10
        return torch.cond(large, lambda x: x / x.abs().amax(), lambda x: model.layer(x).tanh(), (x,)) + 1

    return Subject(Model(forward, layer=nn.Linear(6, 6)), ((numbers(4, 6),), (numbers(3, 6, seed=1),)), "to_onnx", BATCH)


@subject
def loop() -> Subject:
    """Roots by Newton's rule, three steps, and two matrices in turns."""

    def forward(model: Any, x: Tensor) -> Tensor:
        root = x.abs() + 1
        for _ in range(3):
            root = 0.5 * (root + x.abs() / root)
        for i in range(4):
            root = torch.relu(model.odd(root) if i % 2 else model.even(root))
        return root

    return Subject(Model(forward, odd=nn.Linear(5, 5), even=nn.Linear(5, 5)), ((numbers(4, 5),), (numbers(2, 5, seed=1),)), "dynamo", BATCH)


@subject
def half() -> Subject:
    """A small network in float16."""
    model = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1)).half()
    return Subject(model, ((numbers(4, 8).half(),), (numbers(3, 8, seed=1).half(),)), "to_onnx", BATCH)


@subject
def buckets() -> Subject:
    """Integers only: hashed, counted, compared."""

    def forward(model: Any, ids: Tensor) -> tuple[Tensor, Tensor]:
        hashed = (ids * 31 + 7) % 13
        near = (ids - ids.flip(1)).abs() <= 2
        return hashed.cumsum(1) + near, torch.where(ids > 500, ids // 2, ids).amax(1)

    samples, high = ((integers(100, 3, 6),), (integers(100, 2, 8),)), (integers(1000, 3, 6),)
    return Subject(Model(forward), samples, "dynamo", BATCH_TIME, words=1000, advised=(high,))


@subject
def detector() -> Subject:
    """Bytes to normalised pixels to boxes; those with a low score are struck out."""

    def forward(model: Any, image: Tensor) -> tuple[Tensor, Tensor]:
        pixels = (image.float() / 255 - model.mean.weight[:, None]) / model.std.weight[:, None]
        found = model.head(F.interpolate(pixels, scale_factor=0.5, mode="bilinear")).flatten(2).transpose(1, 2)
        best, order = found[..., 0].sigmoid().topk(4, -1)
        boxes = found[..., 1:].gather(1, order[..., None].expand(-1, -1, 4))
        return torch.where(best > 0.8, best, 0.0), (boxes * 16).clamp(0.0, 64.0)

    model: Any = Model(forward, mean=nn.Embedding(3, 1), std=nn.Embedding(3, 1), head=nn.Conv2d(3, 5, 3))
    nn.init.constant_(model.mean.weight, 0.45)
    nn.init.constant_(model.std.weight, 0.22)
    images = [torch.randint(256, (n, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(n)) for n in (2, 3)]
    return Subject(model, ((images[0],), (images[1],)), "to_onnx", BATCH, words=256)


def subjects() -> dict[str, Subject]:
    """Return the twenty by name, always with the same weights."""
    found = {}
    for factory in SUBJECTS:
        torch.manual_seed(0)
        made = factory()
        made.module.eval()
        found[factory.__name__] = made
    return found
