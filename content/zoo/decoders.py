"""Decoders of the transformers library without a cache. Decoders with a cache are in caches."""

from __future__ import annotations

from exportlab.cases import Declaration, case

from .tiny import GROUPED, HEAD, HEADS, HIDDEN, INNER, LAYERS, LONGEST, SIZES, TEXT, VOCABULARY, model, text

SHORT_WINDOW = {"sliding_window": 4}
EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 4}
BOTH_KINDS = ["sliding_attention", "full_attention"]
GPT2 = {"vocab_size": VOCABULARY, "n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS, "n_positions": LONGEST, "use_cache": False}
STATE_SPACE = {"vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "conv_kernel": 3, "use_cache": False}


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def gpt2() -> Declaration:
    """Queries, keys and values come from one transposed product and a split: is it one Gemm, not three?"""
    return model("GPT2Model", **GPT2), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def llama() -> Declaration:
    """Rotary positions, two query heads per key, causal mask and padding, one fully masked row: is it right?"""
    return model("LlamaModel", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "sliding window"))
def mistral() -> Declaration:
    """A causal window of four, exported at seven tokens: is the mask right for texts shorter than the window?"""
    return model("MistralModel", **GROUPED, **SHORT_WINDOW), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def qwen2() -> Declaration:
    """Biases only on queries, keys and values: is each in the right place?"""
    return model("Qwen2Model", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def qwen3() -> Declaration:
    """A norm over each head before the rotation: is it over the last of four axes?"""
    return model("Qwen3Model", **GROUPED, head_dim=HEAD), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def gemma() -> Declaration:
    """Embeddings scaled by a constant in their dtype, norms with 1 + weight: are both folded correctly?"""
    return model("GemmaModel", **GROUPED, head_dim=HEAD), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "sliding window"))
def gemma2() -> Declaration:
    """Scores pass a tanh soft cap before the mask, and every other layer has a window: is the order kept?"""
    return model("Gemma2Model", **GROUPED, **SHORT_WINDOW, head_dim=HEAD), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "sliding window"))
def gemma3t() -> Declaration:
    """Two rotary tables, one for the layers with a window: does each layer use its own?"""
    return model("Gemma3TextModel", **GROUPED, **SHORT_WINDOW, head_dim=HEAD, layer_types=BOTH_KINDS), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def phi() -> Declaration:
    """Half of each head is rotated; attention and feed-forward are parallel: is the split right?"""
    return model("PhiModel", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def phi3() -> Declaration:
    """Fused weights for queries, keys and values, and for gate and value: do the slices match the heads?"""
    return model("Phi3Model", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "experts"))
def mixtral() -> Declaration:
    """Two of four experts per token, selected by value: are all experts exported, and the right two used?"""
    return model("MixtralModel", **GROUPED, **EXPERTS), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "experts"))
def qwen3_moe() -> Declaration:
    """Narrow experts whose weights aren't rescaled after the selection: are experts and weights right?"""
    experts = {"num_experts_per_tok": 2, "num_experts": 4, "moe_intermediate_size": 16}
    return model("Qwen3MoeModel", **GROUPED, **experts, head_dim=HEAD), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "experts"))
def gpt_oss() -> Declaration:
    """A learned sink takes part in each softmax and is dropped; gates are clamped: is the sum below 1?"""
    return model("GptOssModel", **GROUPED, **SHORT_WINDOW, **EXPERTS, head_dim=HEAD, layer_types=BOTH_KINDS), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def olmo2() -> Declaration:
    """Norms after attention and feed-forward, before the residual sum: are they in the right place?"""
    return model("Olmo2Model", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def gpt_neox() -> Declaration:
    """A quarter of each head is rotated, with interleaved queries, keys and values: is the axis order kept?"""
    return model("GPTNeoXModel", **SIZES, use_cache=False), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def opt() -> Declaration:
    """Learned positions from a running sum of the mask, with an offset of two: does padding shift them?"""
    return model("OPTModel", **{**SIZES, "ffn_dim": INNER, "word_embed_proj_dim": HIDDEN, "use_cache": False}), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def falcon() -> Declaration:
    """One key and value for all heads: are they broadcast, or repeated by a constant?"""
    return model("FalconModel", **SIZES, alibi=False, use_cache=False), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "relative positions"))
def bloom() -> Declaration:
    """ALiBi positions: a slope per head times the count of unmasked tokens. Does padding change it?"""
    return model("BloomModel", vocab_size=VOCABULARY, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS, use_cache=False), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "experts"))
def deepseek_v3() -> Declaration:
    """A latent for keys and values, interleaved rotation, experts selected by group: is the selection right?"""
    latent = {"q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8}
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16}
    sizes = {**GROUPED, "num_key_value_heads": HEADS}
    return model("DeepseekV3Model", **sizes, **latent, **experts, first_k_dense_replace=1), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "state space", "loops"))
def mamba() -> Declaration:
    """A state space model with a Python loop over tokens: is it a loop in the exported model?"""
    return model("MambaModel", **STATE_SPACE, state_size=4, time_step_rank=4), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "state space"))
def mamba2() -> Declaration:
    """The same in chunks with segment sums, padded to whole chunks: does the padding follow the length?"""
    heads = {"num_heads": 8, "head_dim": 8, "n_groups": 2, "state_size": 4}
    return model("Mamba2Model", **STATE_SPACE, **heads, chunk_size=4), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "loops"))
def rwkv() -> Declaration:
    """Attention as a recurrence with a running maximum, written row by row: which exporters keep the loop?"""
    sizes = {"hidden_size": HIDDEN, "attention_hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS}
    return model("RwkvModel", **sizes, vocab_size=VOCABULARY, context_length=64, use_cache=False), (), {"input_ids": text()["input_ids"]}


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def lfm2() -> Declaration:
    """Gated short convolutions in one layer, attention in the other: is the convolution causal at any length?"""
    kinds = {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3, "block_auto_adjust_ff_dim": False}
    return model("Lfm2Model", **GROUPED, **kinds), (), text()
