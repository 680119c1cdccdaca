"""Architectures of the transformers library, tiny and with random weights. Not here: pretrained ones; nothing is downloaded."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .case import Declaration, case
from .specs import TensorSpec, built, integers, ones, tensor

LAYERS, HEADS, KEY_HEADS, HEAD = 2, 4, 2, 8


@case(dims={"batch": (2, 3, 1), "seq": (5, 9, 1)}, topics=("transformers", "attention"))
def bert_encoder() -> Declaration:
    """An encoder with an attention mask: do batch and sequence move?"""
    from transformers import BertConfig, BertModel

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel(BertConfig(**sizes(), max_position_embeddings=32))

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            return self.bert(input_ids, attention_mask=attention_mask).last_hidden_state

    return Encoder(), (), {"input_ids": integers("batch", "seq", high=50), "attention_mask": ones("batch", "seq")}


CACHED = {"batch": (2, 3, 1), "seq": (3, 4, 1), "past": (5, 2, 7, 1, 0)}


@case(dims=CACHED, topics=("transformers", "attention", "cache"))
def llama_with_cache() -> Declaration:
    """A decoder takes what it has seen in a `DynamicCache` and returns it longer: do batch, tokens and past move?"""
    from transformers import DynamicCache
    from transformers.integrations.executorch import register_dynamic_cache_export_support

    register_dynamic_cache_export_support()

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.llama = tiny_llama()

        def forward(self, input_ids: Tensor, attention_mask: Tensor, past_key_values: Any) -> tuple[Tensor, Any]:
            found = self.llama(input_ids, attention_mask=attention_mask, past_key_values=past_key_values)
            return found.logits, found.past_key_values

    tokens = {"input_ids": integers("batch", "seq", high=50), "attention_mask": ones("batch", "past+seq")}
    return Decoder(), (), {**tokens, "past_key_values": built(lambda *layers: DynamicCache(layers), *past())}


@case(dims=CACHED, topics=("transformers", "attention", "cache"))
def llama_with_pairs() -> Declaration:
    """The same decoder, its past as pairs of keys and values: does it matter where the cache is built?"""
    from transformers import DynamicCache

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.llama = tiny_llama()

        def forward(self, input_ids: Tensor, attention_mask: Tensor, pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[Any]]:
            found = self.llama(input_ids, attention_mask=attention_mask, past_key_values=DynamicCache(pairs))
            return found.logits, [(layer.keys, layer.values) for layer in found.past_key_values.layers]

    return Decoder(), (integers("batch", "seq", high=50), ones("batch", "past+seq"), past())


def tiny_llama() -> nn.Module:
    """A decoder that shares keys and values between two heads each."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**sizes(), num_key_value_heads=KEY_HEADS, max_position_embeddings=64))


def past() -> list[tuple[TensorSpec, TensorSpec]]:
    """Keys and values of each layer for the tokens seen before."""
    shape = ("batch", KEY_HEADS, "past", HEAD)
    return [(tensor(*shape), tensor(*shape)) for _ in range(LAYERS)]


def sizes() -> dict[str, int]:
    """The part of a configuration that all architectures here share."""
    return {
        "vocab_size": 50,
        "hidden_size": HEADS * HEAD,
        "intermediate_size": 64,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
    }
