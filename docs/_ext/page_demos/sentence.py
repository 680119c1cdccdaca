"""Build the demo of a character-level language model: train it on the Zen of Python, export it with its cache, and store completions."""

from __future__ import annotations

import codecs
import contextlib
import io
import math
from typing import Any

import onnx_ir as ir
import torch
from torch import nn
from torch.nn import functional as F

from exportlab import to_onnx, verify

LAYERS, HEADS, HEAD = 2, 4, 12
WIDTH = HEADS * HEAD
WINDOW, BATCH, STEPS = 64, 8, 400  # settings of the training
LENGTH = 48  # length of a completion in characters
LEAD = 0.05  # minimum lead of each chosen character's score over the next one, so that rounding doesn't matter
STARTS = ("Explicit is ", "Errors should ", "Namespaces ", "Now is better ")

Pair = tuple[torch.Tensor, torch.Tensor]


class Attention(nn.Module):
    """Attention with a cache of keys and values as input, and the longer cache as output."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, bias: torch.Tensor, past: Pair) -> tuple[torch.Tensor, Pair]:
        """Return the output of each new position, and the longer cache."""
        query, key, value = self.into(x).unflatten(2, (3, HEADS, HEAD)).permute(2, 0, 3, 1, 4)
        key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        weights = (query @ key.transpose(2, 3) / math.sqrt(HEAD) + bias).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).flatten(2)), (key, value)


class Block(nn.Module):
    """One layer of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.before, self.behind = Attention(), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mixed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, bias: torch.Tensor, past: Pair) -> tuple[torch.Tensor, Pair]:
        """Return the output of the new positions, and the longer cache."""
        taken, present = self.attention(self.before(x), bias, past)
        x = x + taken
        return x + self.mixed(self.behind(x)), present


class Writer(nn.Module):
    """The model. Its inputs are characters and a cache; its outputs are scores of the next character and the longer cache."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letter, self.blocks = nn.Embedding(letters, WIDTH), nn.ModuleList(Block() for _ in range(LAYERS))
        self.scores = nn.Linear(WIDTH, letters)
        self.register_buffer("slope", 2.0 ** -torch.arange(1, 2 * HEADS, 2)[:, None, None])

    def forward(self, ids: torch.Tensor, past: list[Pair]) -> tuple[torch.Tensor, list[Pair]]:
        """Return scores of shape (batch, new, letters), and a pair of keys and values for each layer."""
        read, new = past[0][0].shape[2], ids.shape[1]
        distance = torch.arange(read, read + new)[:, None] - torch.arange(read + new)[None]
        bias = torch.where(distance < 0, -1e9, -self.slope * distance)
        x, present = self.letter(ids), []
        for block, before in zip(self.blocks, past, strict=True):
            x, longer = block(x, bias, before)
            present.append(longer)
        return self.scores(x), present


def read_zen() -> str:
    """Return the text that `import this` prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return codecs.decode(this.s, "rot13")


def empty(batch: int) -> list[Pair]:
    """Return an empty cache."""
    return [(torch.zeros(batch, HEADS, 0, HEAD), torch.zeros(batch, HEADS, 0, HEAD)) for _ in range(LAYERS)]


def train_writer(text: str, letters: str) -> Writer:
    """Train a model that reproduces the text almost exactly."""
    torch.manual_seed(0)
    model, ids = Writer(len(letters)), torch.tensor([letters.index(letter) for letter in text])
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=STEPS)
    for _ in range(STEPS):
        starts = torch.randint(len(ids) - WINDOW, (BATCH,))
        windows = ids[starts[:, None] + torch.arange(WINDOW + 1)]
        loss = F.cross_entropy(model(windows[:, :-1], empty(BATCH))[0].flatten(0, 1), windows[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval()


@torch.inference_mode()
def complete_text(model: Writer, letters: str, start: str) -> str:
    """Return the completion of a text in eager mode. Without a cache, each step processes the whole text again.

    Raises:
        ValueError: the scores of two characters are so close that rounding could decide.
    """
    text = start
    for _ in range(LENGTH):
        scores = model(torch.tensor([[letters.index(letter) for letter in text]]), empty(1))[0][0, -1]
        (first, second), (best, _) = scores.topk(2)
        if first - second < LEAD:
            raise ValueError(f"the demo's model has no clear next character after {text!r}: {first - second:.3f}; train it longer")
        text += letters[best]
    return text.removeprefix(start)


def export_writer(model: Writer, letters: str) -> bytes:
    """Export the model with its cache as input and output. The lengths of text and cache are dynamic."""

    def call(past: int, new: int) -> tuple[torch.Tensor, list[Pair]]:
        pairs = [(torch.randn(1, HEADS, past, HEAD), torch.randn(1, HEADS, past, HEAD)) for _ in range(LAYERS)]
        return torch.randint(len(letters), (1, new)), pairs

    cache = [f"{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
    names: dict[str, Any] = {"input_names": ["ids", *(f"past.{n}" for n in cache)]}
    names["output_names"] = ["scores", *(f"present.{n}" for n in cache)]
    program = to_onnx(model, call(5, 3), dynamic_shapes=({1: "new"}, [({2: "past"}, {2: "past"})] * LAYERS), **names)
    verify(program, model, [call(5, 3), call(0, 7), call(20, 1)]).check()
    return ir.to_proto(program.model).SerializeToString()


def build_demo() -> tuple[bytes, dict[str, Any]]:
    """Return the exported model and the data of the page."""
    text = read_zen()
    letters = "".join(sorted(set(text)))
    model = train_writer(text, letters)
    answers = {start: complete_text(model, letters, start) for start in STARTS}
    sizes = {"layers": LAYERS, "heads": HEADS, "head": HEAD, "length": LENGTH}
    return export_writer(model, letters), {"letters": letters, "answers": answers, **sizes}
