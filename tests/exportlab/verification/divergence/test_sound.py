"""Twenty sound models that mix precisions: half precision rounds in each, and no node is named, in the files of both exporters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from onnxruntime.transformers.float16 import convert_float_to_float16
from torch import Tensor, nn

from exportlab import export, to_onnx
from exportlab.verification.divergence import compared, first_difference

HALF, BRAIN = torch.float16, torch.bfloat16


class Feed(nn.Module):
    """The middle of a transformer layer, as in the recipe on half precision."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Stored(nn.Module):
    """Weights in half, computed with in float32, as in the recipe."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.block = Feed().to(dtype)

    def forward(self, x: Tensor) -> Any:
        weights = {name: w.float() for name, w in self.block.state_dict(keep_vars=True).items()}
        return torch.func.functional_call(self.block, weights, (x,))


class Length(nn.Module):
    """The recipe's, of numbers whose squares fit."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * x).mean(-1).sqrt()


class LengthInFloat(nn.Module):
    """The recipe's advice: float32 around the squares, which need not fit then."""

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return (wide * wide).mean(-1).sqrt().to(x.dtype)


class Images(nn.Module):
    """Convolutions, a batch norm, a pool."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, stride=2)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.first(x)))
        return self.head(F.max_pool2d(F.silu(self.second(x)), 2).mean((2, 3)))


class Groups(nn.Module):
    """Group and instance norms."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.group, self.instance = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.instance(F.gelu(self.group(self.first(x)))).mean((2, 3)) + self.group(self.first(x)).amax((2, 3))


class RmsNorm(nn.Module):
    """The norm of a Llama: in float32 within a model in half."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


class Layer(nn.Module):
    """An attention with the softmax in float32 and two masks, whose sum is minus infinity in half."""

    def __init__(self, masks: int = 1, wide: bool = True) -> None:
        super().__init__()
        self.before, self.after = RmsNorm(16), RmsNorm(16)
        self.qkv, self.mix, self.up, self.down = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 32), nn.Linear(32, 16)
        self.masks, self.wide = masks, wide

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        query, key, value = (part.view(batch, length, 2, 8).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1))
        scores = query @ key.transpose(-2, -1) * 8**-0.5
        hidden = torch.full((length, length), torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)
        for _ in range(self.masks):
            scores = scores + hidden
        weights = F.softmax(scores, -1, dtype=torch.float32 if self.wide else None).to(x.dtype)
        x = x + self.mix((weights @ value).transpose(1, 2).reshape(batch, length, 16))
        return x + self.down(F.silu(self.up(self.after(x))))


class Masked(nn.Module):
    """Attention by the function, with minus infinity where it may not look."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ x.transpose(1, 2) / 4
        hidden = torch.ones(x.shape[1], x.shape[1]).triu(1) > 0
        return (
            scores.masked_fill(hidden, float("-inf")).softmax(-1) @ F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])[:, 0]
        )


class Stack(nn.Module):
    """Layers one after the other, so that rounding adds up."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(6))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return F.layer_norm(x, (16,))


class Steps(nn.Module):
    """A gated cell over some steps, with a sum in float32 beside."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.new = nn.Linear(12, 12), nn.Linear(12, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        state, total = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0], dtype=torch.float32)
        for step in range(4):
            reset, update = torch.sigmoid(self.gates(torch.cat([x[:, step], state], -1))).chunk(2, -1)
            state = update * state + (1 - update) * torch.tanh(self.new(torch.cat([x[:, step], reset * state], -1)))
            total = total + state.float()
        return state, total


class Memory(nn.Module):
    """An LSTM of the library."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


class Offset(nn.Module):
    """A large number that stays: what it swallows is missed by nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(x) + 300


class Centred(nn.Module):
    """Elements near zero beside large ones, and a mean that is nothing but rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(x) * 20
        y = y - y.mean(-1, keepdim=True)
        rest = y.mean(-1, keepdim=True)
        return self.down(y / (y.abs().amax(-1, keepdim=True) + 1)) + rest * 0.001


class Words(nn.Module):
    """Embeddings in half, logits in float32, and the word that is chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(50, 16), nn.LayerNorm(16)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.norm(self.words(tokens))
        logits = (hidden @ self.words.weight.T).float()
        return logits.log_softmax(-1), logits.argmax(-1)


class Branching(nn.Module):
    """Half precision that decides: a comparison, a floor and the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(x)
        top = y.topk(3, -1).values
        return torch.where(y > 0.3, y * 2, y / 3).sum(-1, keepdim=True) + top + (y * 4).floor().mean(-1, keepdim=True)


class Back(nn.Module):
    """To float32 and back again between the operations."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = F.softplus(self.up(x).float()).to(x.dtype)
        return torch.log1p(self.down(y).float().abs()) * 3


class Doubled(nn.Module):
    """A float32 model with a part in float64 and one in half."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(x)
        y = y / y.double().square().sum(-1, keepdim=True).sqrt().to(y.dtype)
        return self.down(torch.sigmoid(y.half()).to(y.dtype))


@dataclass(frozen=True)
class Sound:
    """A model, its dtype and that of its input, and how it is called; bfloat16 has no kernels in ONNX Runtime, but by casts."""

    name: str
    module: Callable[[], nn.Module]
    shape: tuple[int, ...]
    dtype: torch.dtype | None = HALF
    given: torch.dtype | None = HALF
    large: float = 1.0

    @property
    def official_loads(self) -> bool:
        return self.dtype is not BRAIN

    def made(self) -> nn.Module:
        torch.manual_seed(0)
        module = self.module().eval()
        return module.to(self.dtype) if self.dtype else module

    def sample(self, seed: int) -> Tensor:
        torch.manual_seed(seed)
        return torch.randint(50, self.shape) if self.given is None else (torch.randn(self.shape) * self.large).to(self.given)


SOUND = (
    Sound("recipe-float16", Feed, (7, 32)),
    Sound("recipe-bfloat16", Feed, (7, 32), BRAIN, BRAIN),
    Sound("recipe-float16-weights", lambda: Stored(HALF), (7, 32), None, torch.float32),
    Sound("recipe-bfloat16-weights", lambda: Stored(BRAIN), (7, 32), None, torch.float32),
    Sound("recipe-length", Length, (2, 4)),
    Sound("recipe-length-in-float32", LengthInFloat, (2, 4), large=300.0),
    Sound("images", Images, (2, 3, 11, 11)),
    Sound("groups", Groups, (2, 3, 9, 9)),
    Sound("layer", Layer, (2, 6, 16)),
    Sound("layer-bfloat16", Layer, (2, 6, 16), BRAIN, BRAIN),
    Sound("two-masks", lambda: Layer(2, wide=False), (2, 6, 16)),
    Sound("masked", Masked, (2, 6, 16)),
    Sound("stack", Stack, (2, 6, 16)),
    Sound("steps", Steps, (3, 4, 6)),
    Sound("memory", Memory, (3, 4, 6)),
    Sound("offset", Offset, (5, 16)),
    Sound("centred", Centred, (5, 16)),
    Sound("words", Words, (3, 7), HALF, None),
    Sound("branching", Branching, (9, 16)),
    Sound("back", Back, (5, 16)),
    Sound("doubled", Doubled, (5, 16), None, torch.float32),
)


def official(module: nn.Module, args: tuple[Tensor, ...], **options: Any) -> torch.onnx.ONNXProgram:
    return torch.onnx.export(module, args, dynamo=True, verbose=False, **options)


MADE = [(sound, exporter) for sound in SOUND for exporter in (to_onnx, official) if sound.official_loads or exporter is to_onnx]


@pytest.mark.parametrize(("sound", "exporter"), MADE, ids=lambda value: getattr(value, "name", getattr(value, "__name__", "")))
def test_no_node_of_a_sound_model_is_named(sound: Sound, exporter: Callable[..., torch.onnx.ONNXProgram]) -> None:
    program = exporter(sound.made(), (sound.sample(0),))
    for seed in range(3):
        found = first_difference(program, sound.sample(seed))
        assert found.node is None, repr(found)


@pytest.mark.parametrize("keep", [True, False], ids=["float32-outside", "float16-outside"])
def test_no_node_of_a_file_that_was_converted_to_half_is_named(keep: bool) -> None:
    torch.manual_seed(0)
    module, x = Feed().eval(), torch.randn(7, 32)
    program = to_onnx(module, (x,))
    converted = convert_float_to_float16(program.model_proto, keep_io_types=keep)
    found = compared(program.exported_program, converted, (x if keep else x.half(),))
    assert found.node is None, repr(found)
    assert {row.actual.partition("[")[0] for row in found.rows} == ({"f16", "f32"} if keep else {"f16"})


def test_no_node_of_a_file_that_keeps_its_weights_in_half_is_named() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 32)
    kept = export("dynamo", Stored(HALF).eval(), (x,), optimize=False)
    assert first_difference(kept, x).node is None


class Shifted(nn.Module):
    """A product with an element near zero, then a number that swallows the rest, as in a report of a user."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        y = (self.up(x) @ x.transpose(0, 1)) / 4
        return torch.tanh((y + 300) - 300)


@pytest.mark.parametrize("exporter", [to_onnx, official])
def test_the_number_that_swallows_is_named_and_not_the_element_near_zero(exporter: Callable[..., torch.onnx.ONNXProgram]) -> None:
    torch.manual_seed(0)
    module, x = Shifted().eval().half(), torch.randn(16, 16).half()
    found = first_difference(exporter(module, (x,)), x)
    assert found.first.op == "add"
    assert found.first.kind == "rounding"
    assert found.first.at_outputs > 1 > found.first.repaired
    assert "at the outputs the file is nearer to float64" in repr(found).replace("\n", " ")


def test_half_precision_that_is_wrong_in_the_file_is_told_from_what_it_rounds() -> None:
    torch.manual_seed(0)
    program = to_onnx(Feed().eval().half(), (torch.randn(4, 32).half(),))
    gelu = next(node for node in program.model.graph if node.op_type == "Gelu")
    gelu.op_type = "Elu"
    del gelu.attributes["approximate"]
    found = first_difference(program, torch.randn(4, 32).half())
    assert (found.first.op, found.first.kind, found.first.nearer) == ("gelu", "wrong", "eager")
    assert found.first.dtype is HALF
