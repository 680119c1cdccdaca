"""Models at the sizes that people deploy, with random weights: `exportlab bench exportlab/measure/real.py:bert_base`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec, integers, ones, tensor

IMAGES = {"batch": (2, 1, 3)}  # exported at 2: torch.export keeps a size of 1
WORDS = {"batch": (2, 1, 3), "seq": (16, 9, 24)}
STEP = {"batch": (2, 1), "past": (7, 12)}
CACHED = {"batch": (2, 1), "seq": (8, 3), "past": (5, 9)}
BERT, WHISPER, LLAMA = 30522, 51865, 32000  # words
WHISPER_LAYERS, WHISPER_HEADS, HEAD, HEARD = 12, 12, 64, 1500
LLAMA_LAYERS, KEY_HEADS = 16, 8
Pairs = list[tuple[Tensor, Tensor]]


class Images(nn.Module):
    """A model of transformers between one batch of images and its first result."""

    model: Any

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Any:
        """Take `(batch, 3, 224, 224)`."""
        return self.model(images)[0]


class Texts(Images):
    """A model of transformers between tokens, which of them count, and its first result."""

    def forward(self, ids: Tensor, mask: Tensor) -> Any:  # type: ignore[override]
        """Take two times `(batch, seq)`."""
        return self.model(ids, attention_mask=mask)[0]


class Listening(nn.Module):
    """The decoder of Whisper: one token, what it wrote before, and what the encoder heard, whose keys and values do not change."""

    decoder: Any
    head: Any

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.decoder, self.head = model.model.decoder, model.proj_out

    def forward(self, ids: Tensor, heard: Tensor, written: Pairs, crossed: Pairs) -> tuple[Tensor, Pairs]:
        """Return logits and what was written, one token longer."""
        from transformers import DynamicCache, EncoderDecoderCache

        cache = EncoderDecoderCache(DynamicCache(written), DynamicCache(crossed))
        found = self.decoder(ids, encoder_hidden_states=heard, past_key_values=cache, use_cache=True)
        return self.head(found[0]), pairs_of(cache.self_attention_cache)


class Writing(nn.Module):
    """A Llama with its head: tokens, and keys and values of those before, which come back longer."""

    model: Any

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor, before: Pairs) -> tuple[Tensor, Pairs]:
        """Return the logits of the last token, and the cache as pairs."""
        from transformers import DynamicCache

        found = self.model(ids, attention_mask=mask, past_key_values=DynamicCache(before), logits_to_keep=1)
        return found.logits, pairs_of(found.past_key_values)


def pairs_of(cache: Any) -> Pairs:
    """Return the keys and values of each layer."""
    return [(layer.keys, layer.values) for layer in cache.layers]


def seen(heads: int, length: int | str, layers: int, dtype: torch.dtype = torch.float32) -> list[tuple[TensorSpec, TensorSpec]]:
    """Declare keys and values of so many layers."""
    return [(tensor("batch", heads, length, HEAD, dtype=dtype), tensor("batch", heads, length, HEAD, dtype=dtype)) for _ in range(layers)]


@case(dims=IMAGES)
def resnet50() -> Declaration:
    """ResNet-50 as transformers has it: 23 M weights."""
    from transformers import ResNetConfig, ResNetModel

    return Images(ResNetModel(ResNetConfig())), (tensor("batch", 3, 224, 224),)


@case(dims=IMAGES)
def vit_b16() -> Declaration:
    """ViT-B/16: 86 M weights."""
    from transformers import ViTConfig, ViTModel

    return Images(ViTModel(ViTConfig())), (tensor("batch", 3, 224, 224),)


@case(dims=WORDS)
def bert_base() -> Declaration:
    """BERT-base: 109 M weights."""
    from transformers import BertConfig, BertModel

    return Texts(BertModel(BertConfig())), (integers("batch", "seq", high=BERT), ones("batch", "seq"))


def whisper_small() -> Any:
    """Return Whisper-small: 242 M weights, of which the encoder has 88 M."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sides: dict[str, Any] = {
        f"{side}_{what}": value
        for side in ("encoder", "decoder")
        for what, value in (("layers", WHISPER_LAYERS), ("attention_heads", WHISPER_HEADS), ("ffn_dim", 3072))
    }
    return WhisperForConditionalGeneration(WhisperConfig(d_model=768, **sides))


@case(dims={"batch": (2, 1)})
def whisper_small_encoder() -> Declaration:
    """Thirty seconds of sound."""
    return Images(whisper_small().model.encoder), (tensor("batch", 80, 2 * HEARD),)


@case(dims=STEP)
def whisper_small_decoder() -> Declaration:
    """One token after those that were written."""
    return Listening(whisper_small()), (
        integers("batch", 1, high=WHISPER),
        tensor("batch", HEARD, 768),
        seen(WHISPER_HEADS, "past", WHISPER_LAYERS),
        seen(WHISPER_HEADS, HEARD, WHISPER_LAYERS),
    )


def llama_1b(dtype: torch.dtype) -> Declaration:
    """Return a Llama of 1.1 billion weights with inputs."""
    from transformers import LlamaConfig, LlamaForCausalLM

    heads: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": KEY_HEADS}
    sizes: dict[str, Any] = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": LLAMA_LAYERS, "vocab_size": LLAMA}
    model: Any = LlamaForCausalLM(LlamaConfig(**sizes, **heads))
    cache = seen(KEY_HEADS, "past", LLAMA_LAYERS, dtype)
    return Writing(model.to(dtype)), (integers("batch", "seq", high=LLAMA), ones("batch", "past+seq"), cache)


@case(dims=CACHED)
def llama_1b_float32() -> Declaration:
    """A Llama of a billion weights with its cache."""
    return llama_1b(torch.float32)


@case(dims=CACHED)
def llama_1b_bfloat16() -> Declaration:
    """The same in bfloat16."""
    return llama_1b(torch.bfloat16)


@dataclass(frozen=True)
class Real:
    """A model of this file as a page shows it: its name there, and the sizes at which a call is timed."""

    name: str
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


REAL: Mapping[str, Real] = {
    "resnet50": Real("ResNet-50", {"batch": (1, 8)}),
    "vit_b16": Real("ViT-B/16", {"batch": (1,)}),
    "bert_base": Real("BERT-base", {"batch": (1,), "seq": (128,)}),
    "whisper_small_encoder": Real("Whisper-small, encoder", {"batch": (1,)}),
    "whisper_small_decoder": Real("Whisper-small, one token", {"batch": (1,), "past": (64,)}),
    "llama_1b_float32": Real("Llama of 1 B, float32", {"batch": (1,), "seq": (128, 1), "past": (0, 128)}),
    "llama_1b_bfloat16": Real("Llama of 1 B, bfloat16", {"batch": (1,), "seq": (128, 1), "past": (0, 128)}),
}
