"""Define models at deployment sizes with random weights: `exportlab bench exportlab/measure/real.py:bert_base`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec, integers, ones, tensor

IMAGES = {"batch": (2, 1, 3)}  # exported at batch 2: torch.export specialises a size of 1
WORDS = {"batch": (2, 1, 3), "seq": (16, 9, 24)}
STEP = {"batch": (2, 1), "past": (7, 12)}
CACHED = {"batch": (2, 1), "seq": (8, 3), "past": (5, 9)}
BERT, WHISPER, LLAMA = 30522, 51865, 32000  # vocabulary sizes
WHISPER_LAYERS, WHISPER_HEADS, HEAD, HEARD = 12, 12, 64, 1500
LLAMA_LAYERS, KEY_HEADS = 16, 8
Pairs = list[tuple[Tensor, Tensor]]


class Images(nn.Module):
    """An image model of transformers that returns only its first output."""

    model: Any

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Any:
        """Run the model on images `(batch, 3, 224, 224)`."""
        return self.model(images)[0]


class Texts(Images):
    """A text model of transformers with token ids and an attention mask, which returns only its first output."""

    def forward(self, ids: Tensor, mask: Tensor) -> Any:  # type: ignore[override]
        """Run the model on ids and mask, both `(batch, seq)`."""
        return self.model(ids, attention_mask=mask)[0]


class Listening(nn.Module):
    """The decoder of Whisper for one token. Inputs are the token, the encoder's output, the self-attention cache, and the constant
    cross-attention cache.
    """

    decoder: Any
    head: Any

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.decoder, self.head = model.model.decoder, model.proj_out

    def forward(self, ids: Tensor, heard: Tensor, written: Pairs, crossed: Pairs) -> tuple[Tensor, Pairs]:
        """Return the logits, and the self-attention cache, one token longer."""
        from transformers import DynamicCache, EncoderDecoderCache

        cache = EncoderDecoderCache(DynamicCache(written), DynamicCache(crossed))
        found = self.decoder(ids, encoder_hidden_states=heard, past_key_values=cache, use_cache=True)
        return self.head(found[0]), pairs_of(cache.self_attention_cache)


class Writing(nn.Module):
    """A Llama with its head. Inputs are tokens, mask and cache; outputs are logits and the longer cache."""

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
    """Declare the keys and values of `layers` layers."""
    return [(tensor("batch", heads, length, HEAD, dtype=dtype), tensor("batch", heads, length, HEAD, dtype=dtype)) for _ in range(layers)]


@case(dims=IMAGES)
def resnet50() -> Declaration:
    """ResNet-50 as in transformers: 23 M weights."""
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
    """Return Whisper-small: 242 M weights, 88 M of them in the encoder."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sides: dict[str, Any] = {
        f"{side}_{what}": value
        for side in ("encoder", "decoder")
        for what, value in (("layers", WHISPER_LAYERS), ("attention_heads", WHISPER_HEADS), ("ffn_dim", 3072))
    }
    return WhisperForConditionalGeneration(WhisperConfig(d_model=768, **sides))


@case(dims={"batch": (2, 1)})
def whisper_small_encoder() -> Declaration:
    """The encoder of Whisper-small, for 30 seconds of audio."""
    return Images(whisper_small().model.encoder), (tensor("batch", 80, 2 * HEARD),)


@case(dims=STEP)
def whisper_small_decoder() -> Declaration:
    """The decoder of Whisper-small, for one token with a cache."""
    return Listening(whisper_small()), (
        integers("batch", 1, high=WHISPER),
        tensor("batch", HEARD, 768),
        seen(WHISPER_HEADS, "past", WHISPER_LAYERS),
        seen(WHISPER_HEADS, HEARD, WHISPER_LAYERS),
    )


def llama_1b(dtype: torch.dtype) -> Declaration:
    """Return a Llama with 1.1 billion weights and its inputs."""
    from transformers import LlamaConfig, LlamaForCausalLM

    heads: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": KEY_HEADS}
    sizes: dict[str, Any] = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": LLAMA_LAYERS, "vocab_size": LLAMA}
    model: Any = LlamaForCausalLM(LlamaConfig(**sizes, **heads))
    cache = seen(KEY_HEADS, "past", LLAMA_LAYERS, dtype)
    return Writing(model.to(dtype)), (integers("batch", "seq", high=LLAMA), ones("batch", "past+seq"), cache)


@case(dims=CACHED)
def llama_1b_float32() -> Declaration:
    """A Llama with 1.1 billion weights and a cache."""
    return llama_1b(torch.float32)


@case(dims=CACHED)
def llama_1b_bfloat16() -> Declaration:
    """The same Llama in bfloat16."""
    return llama_1b(torch.bfloat16)


@dataclass(frozen=True)
class Real:
    """A model of this file on a benchmark page: its display name, and the sizes at which calls are timed."""

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
