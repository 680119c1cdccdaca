"""Models of the transformers library with a cache as input and output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec, built, integers, ones, tensor

from .decoders import EXPERTS, GPT2, SHORT_WINDOW, STATE_SPACE
from .seq2seq import BART, T5
from .tiny import GROUPED, HEAD, HEADS, HIDDEN, LAYERS, SIZES, VOCABULARY, cached, model, padded, padded_at_start, past

SOME = {"batch": (2, 3, 1), "seq": (3, 4, 1), "past": (5, 2, 7, 1, 0)}
STEP = {"batch": (2, 3, 1), "past": (5, 8, 1, 0)}
LONGEST_KEPT = 12  # positions of a static cache
Pairs = list[tuple[Tensor, Tensor]]


@case(dims=SOME, topics=("transformers", "text", "attention", "cache"))
def llama_with_cache() -> Declaration:
    """A decoder with a `DynamicCache` as input and output: are batch, tokens and past dynamic?"""

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.llama = tiny_llama()

        def forward(self, input_ids: Tensor, attention_mask: Tensor, past_key_values: Any) -> tuple[Tensor, Any]:
            found = self.llama(input_ids, attention_mask=attention_mask, past_key_values=past_key_values)
            return found.logits, found.past_key_values

    tokens = {"input_ids": integers("batch", "seq", high=VOCABULARY), "attention_mask": ones("batch", "past+seq")}
    return Decoder(), (), {**tokens, "past_key_values": cached(past())}


@case(dims=SOME, topics=("transformers", "text", "attention", "cache"))
def llama_with_pairs() -> Declaration:
    """The same decoder with key and value pairs: does it matter where the cache is built?"""
    from transformers import DynamicCache

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.llama = tiny_llama()

        def forward(self, input_ids: Tensor, attention_mask: Tensor, pairs: Pairs) -> tuple[Tensor, Pairs]:
            found = self.llama(input_ids, attention_mask=attention_mask, past_key_values=DynamicCache(pairs))
            return found.logits, pairs_of(found.past_key_values)

    return Decoder(), (integers("batch", "seq", high=VOCABULARY), ones("batch", "past+seq"), past())


def tiny_llama() -> nn.Module:
    """A decoder with two query heads per key and value head."""
    return model("LlamaForCausalLM", "LlamaConfig", **{**GROUPED, "use_cache": True})


def pairs_of(cache: Any) -> Pairs:
    """The keys and values of each layer of a cache."""
    return [(layer.keys, layer.values) for layer in cache.layers]


def next_token() -> dict[str, TensorSpec]:
    """One more token of each text, and the attention mask, which includes the past."""
    return {"input_ids": integers("batch", 1, high=VOCABULARY), "attention_mask": TensorSpec(("batch", "past+1"), padded_at_start)}


@case(dims=STEP, topics=("transformers", "text", "cache"))
def gpt2_with_cache() -> Declaration:
    """Learned positions continue after the past: is its length read at run time?"""
    return model("GPT2Model", **GPT2), (), {**next_token(), "past_key_values": cached(past(HEADS)), "use_cache": True}


@case(dims=STEP, topics=("transformers", "text", "cache"))
def gpt_neox_with_cache() -> Declaration:
    """Only a quarter of each cached head is rotated: does the new quarter use its own position?"""
    return model("GPTNeoXModel", **SIZES), (), {**next_token(), "past_key_values": cached(past(HEADS)), "use_cache": True}


@case(dims=STEP, topics=("transformers", "text", "cache"))
def phi_with_cache() -> Declaration:
    """Attention and feed-forward share a norm, but only attention uses the past: are they kept apart?"""
    return model("PhiModel", **GROUPED), (), {**next_token(), "past_key_values": cached(past()), "use_cache": True}


@case(dims=STEP, topics=("transformers", "text", "cache"))
def qwen2_with_cache() -> Declaration:
    """One token with a past of any length, even zero, and left padding: is the mask row right?"""
    return model("Qwen2Model", **GROUPED), (), {**next_token(), "past_key_values": cached(past()), "use_cache": True}


@case(dims=STEP, topics=("transformers", "text", "cache"))
def llama_step_without_mask() -> Declaration:
    """One token with its past and no attention mask: does the exported model attend to the whole past?"""
    step = {"input_ids": integers("batch", 1, high=VOCABULARY)}
    return model("LlamaModel", **GROUPED), (), {**step, "past_key_values": cached(past()), "use_cache": True}


@case(dims=STEP, topics=("transformers", "text", "cache"))
def gemma_with_cache() -> Declaration:
    """An input flag requests the cache: is it specialised, and is the cache returned?"""
    return model("GemmaModel", **GROUPED, head_dim=HEAD), (), {**next_token(), "past_key_values": cached(past()), "use_cache": True}


@case(dims=STEP, topics=("transformers", "text", "cache", "sliding window"))
def mistral_with_cache() -> Declaration:
    """A window of four with pasts of five, eight and zero: does the mask hide tokens outside the window?"""
    return model("MistralModel", **GROUPED, **SHORT_WINDOW), (), {**next_token(), "past_key_values": cached(past()), "use_cache": True}


@case(dims=STEP, topics=("transformers", "text", "cache", "experts"))
def mixtral_with_cache() -> Declaration:
    """With one token, most experts are unused: does the exported model only contain the experts of the example?"""
    return model("MixtralModel", **GROUPED, **EXPERTS), (), {**next_token(), "past_key_values": cached(past()), "use_cache": True}


class WithPairs(nn.Module):
    """A decoder with its past as key and value pairs per layer, as input and output."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, past: Pairs) -> tuple[Tensor, Pairs]:
        from transformers import DynamicCache

        found = self.decoder(input_ids, attention_mask=attention_mask, past_key_values=DynamicCache(past), use_cache=True)
        return found.last_hidden_state, pairs_of(found.past_key_values)


@case(dims=STEP, topics=("transformers", "text", "cache", "containers"))
def gpt2_with_pairs() -> Declaration:
    """The past as pairs, with separate keys per head: do the four tensors keep their order?"""
    return WithPairs(model("GPT2Model", **GPT2)), (), {**next_token(), "past": past(HEADS)}


@case(dims=STEP, topics=("transformers", "text", "cache", "containers"))
def qwen2_with_pairs() -> Declaration:
    """The past as pairs, empty at the last size: are empty tensors concatenated correctly?"""
    return WithPairs(model("Qwen2Model", **GROUPED)), (), {**next_token(), "past": past()}


@case(dims=STEP, topics=("transformers", "text", "cache", "containers"))
def gemma_with_pairs() -> Declaration:
    """The past as pairs with fewer heads than the queries: are keys repeated after they are cached?"""
    return WithPairs(model("GemmaModel", **GROUPED, head_dim=HEAD)), (), {**next_token(), "past": past()}


@case(dims={"batch": (2, 3, 1), "past": (5, 8, 1)}, topics=("transformers", "text", "cache", "sliding window"))
def gemma3_with_window() -> Declaration:
    """Some layers cache only the last three tokens, others all: are both past lengths dynamic?"""
    from transformers import DynamicCache

    kinds = ["sliding_attention", "full_attention"]
    decoder = model("Gemma3TextModel", **GROUPED, **SHORT_WINDOW, head_dim=HEAD, layer_types=kinds)

    class Windowed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.decoder = decoder

        def forward(self, input_ids: Tensor, prompt: Tensor) -> tuple[Tensor, Pairs]:
            seen = self.decoder(prompt, past_key_values=DynamicCache(config=self.decoder.config), use_cache=True)
            found = self.decoder(input_ids, past_key_values=seen.past_key_values, use_cache=True)
            return found.last_hidden_state, pairs_of(found.past_key_values)

    return Windowed(), (integers("batch", 1, high=VOCABULARY), integers("batch", "past", high=VOCABULARY))


@case(dims={"batch": (2, 3, 1), "seq": (3, 4, 1)}, topics=("transformers", "text", "cache", "inplace"))
def llama_static_cache() -> Declaration:
    """A `StaticCache` of twelve positions from input tensors, written in place: is the updated cache an output?"""
    from transformers import StaticCache

    class Static(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.llama = tiny_llama()

        def forward(self, input_ids: Tensor, filled: Tensor, past: Pairs) -> tuple[Tensor, Pairs]:
            cache = StaticCache(config=self.llama.config, max_cache_len=LONGEST_KEPT)
            for layer, (keys, values) in zip(cache.layers, past, strict=True):
                layer.lazy_initialization(keys, values)
                layer.keys, layer.values, layer.cumulative_length = keys.clone(), values.clone(), filled.clone()
            found = self.llama(input_ids, past_key_values=cache, use_cache=True)
            return found.logits, pairs_of(cache)

    return Static(), (integers("batch", "seq", high=VOCABULARY), integers(low=2, high=8), past(length=LONGEST_KEPT))


@case(topics=("transformers", "text", "cache", "state"))
def llama_static_buffers() -> Declaration:
    """The library's own method, a static cache in buffers: what happens to it in a stateless exported model?"""
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    decoder = tiny_llama()
    decoder.generation_config.cache_implementation = "static"
    module = TorchExportableModuleWithStaticCache(decoder, batch_size=2, max_cache_len=LONGEST_KEPT)
    return module, (), {"input_ids": integers(2, 3, high=VOCABULARY), "cache_position": built(torch.arange, 3)}


ANSWER = {"batch": (2, 3, 1), "seq": (7, 10, 1), "past": (5, 8, 1)}


class AnswerStep(nn.Module):
    """One more token of a decoder with an encoder's output: both pasts are inputs, the longer own one is an output."""

    def __init__(self, whole: nn.Module) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, encoded: Tensor, attention_mask: Tensor, token: Tensor, own: Pairs, crossed: Pairs) -> tuple[Tensor, Pairs]:
        from transformers import DynamicCache, EncoderDecoderCache
        from transformers.modeling_outputs import BaseModelOutput

        found = self.whole(
            attention_mask=attention_mask,
            decoder_input_ids=token,
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            past_key_values=EncoderDecoderCache(DynamicCache(own), DynamicCache(crossed)),
            use_cache=True,
        )
        return found.last_hidden_state, pairs_of(found.past_key_values.self_attention_cache)


def answering() -> tuple[Any, ...]:
    """The encoder's output, its mask, one token, and both kinds of keys and values."""
    encoded = tensor("batch", "seq", HIDDEN), TensorSpec(("batch", "seq"), padded)
    return *encoded, integers("batch", 1, high=VOCABULARY), past(HEADS), past(HEADS, "seq")


@case(dims=ANSWER, topics=("transformers", "text", "cache", "relative positions"))
def t5_with_pairs() -> Declaration:
    """A growing and a constant past, with biases for the last row: is it the last row?"""
    return AnswerStep(model("T5Model", **T5)), answering()


@case(dims=ANSWER, topics=("transformers", "text", "cache"))
def bart_with_pairs() -> Declaration:
    """The cross-attention cache is constant: is it left unchanged, and the encoder's output unused?"""
    return AnswerStep(model("BartModel", **BART)), answering()


@case(dims=ANSWER, topics=("transformers", "text", "cache", "containers"))
def bart_with_cache() -> Declaration:
    """Both pasts in an `EncoderDecoderCache`, a nested container: is it rebuilt as output?"""
    from transformers import EncoderDecoderCache
    from transformers.exporters.exporter_dynamo import register_pytree_node

    register_pytree_node(EncoderDecoderCache)
    encoded, mask, new, own, crossed = answering()
    both = built(EncoderDecoderCache, cached(own), cached(crossed))
    inputs = {"attention_mask": mask, "decoder_input_ids": new, "encoder_outputs": (encoded,)}
    return model("BartModel", **BART), (), {**inputs, "past_key_values": both, "use_cache": True}


@case(dims={"batch": (2, 3, 1)}, topics=("transformers", "text", "cache", "state space"))
def mamba_with_state() -> Declaration:
    """One token with a state of constant size: are both in-place updated states outputs of the exported model?"""
    from transformers import DynamicCache

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mamba = model("MambaModel", **STATE_SPACE, state_size=4, time_step_rank=4)

        def forward(self, input_ids: Tensor, states: Pairs) -> tuple[Tensor, Pairs]:
            cache = with_states(DynamicCache(config=self.mamba.config), states)
            found = self.mamba(input_ids, cache_params=cache, use_cache=True)
            return found.last_hidden_state, [(layer.conv_states[0], layer.recurrent_states[0]) for layer in cache.layers]

    state = tensor("batch", 2 * HIDDEN, 3), tensor("batch", 2 * HIDDEN, 4)
    return Recurrent(), (integers("batch", 1, high=VOCABULARY), [state] * LAYERS)


def with_states(cache: Any, states: Iterable[tuple[Tensor, Tensor]]) -> Any:
    """The cache of a state space model, filled with the states of its convolutions and recurrences."""
    for layer, (convolved, recurrent) in zip(cache.layers, states, strict=True):
        layer.update_conv_state(convolved)
        layer.update_recurrent_state(recurrent)
    return cache
