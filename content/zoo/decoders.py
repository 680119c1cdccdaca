"""Decoders of the transformers library, without their past. Not here: the same with a cache, which are in caches."""

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
    """Queries, keys and values come of one transposed product and are split: is it one Gemm, not three?"""
    return model("GPT2Model", **GPT2), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def llama() -> Declaration:
    """Rotary positions, two heads to one key: a causal mask and padding, and one row that sees nothing. Right there too?"""
    return model("LlamaModel", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "sliding window"))
def mistral() -> Declaration:
    """A causal window of four, exported at seven tokens: does a text shorter than the window still get the mask right?"""
    return model("MistralModel", **GROUPED, **SHORT_WINDOW), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def qwen2() -> Declaration:
    """Biases on queries, keys and values, none elsewhere: is each where it belongs?"""
    return model("Qwen2Model", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def qwen3() -> Declaration:
    """A norm over each head before the rotation: is it over the last axis of four?"""
    return model("Qwen3Model", **GROUPED, head_dim=HEAD), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def gemma() -> Declaration:
    """Embeddings scaled by a constant in their own type, norms with 1 + weight: are both folded right?"""
    return model("GemmaModel", **GROUPED, head_dim=HEAD), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "sliding window"))
def gemma2() -> Declaration:
    """Scores pass a soft cap by tanh before the mask, every other layer has a window: is the order kept?"""
    return model("Gemma2Model", **GROUPED, **SHORT_WINDOW, head_dim=HEAD), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "sliding window"))
def gemma3t() -> Declaration:
    """Two rotary tables, one of them for the layers with a window: does each layer turn by its own?"""
    return model("Gemma3TextModel", **GROUPED, **SHORT_WINDOW, head_dim=HEAD, layer_types=BOTH_KINDS), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def phi() -> Declaration:
    """Half of each head is turned, the other half kept; attention and feed-forward side by side: is the cut right?"""
    return model("PhiModel", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def phi3() -> Declaration:
    """Queries, keys and values in one weight, gate and value in another: do the slices meet at the right heads?"""
    return model("Phi3Model", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "experts"))
def mixtral() -> Declaration:
    """Two of four experts for each token, chosen by value: are all experts in the file, and the right two used?"""
    return model("MixtralModel", **GROUPED, **EXPERTS), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "experts"))
def qwen3_moe() -> Declaration:
    """Experts narrower than the layer, their weights not rescaled after the choice: the same two, with the same weights?"""
    experts = {"num_experts_per_tok": 2, "num_experts": 4, "moe_intermediate_size": 16}
    return model("Qwen3MoeModel", **GROUPED, **experts, head_dim=HEAD), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "experts"))
def gpt_oss() -> Declaration:
    """A learned sink takes a share of each softmax and is dropped; gates are clamped: does the rest sum to less than 1?"""
    return model("GptOssModel", **GROUPED, **SHORT_WINDOW, **EXPERTS, head_dim=HEAD, layer_types=BOTH_KINDS), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def olmo2() -> Declaration:
    """Norms after attention and feed-forward, before the sum: are they where the model has them?"""
    return model("Olmo2Model", **GROUPED), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def gpt_neox() -> Declaration:
    """A quarter of each head is turned, queries, keys and values interleaved by head: is the order of the axes kept?"""
    return model("GPTNeoXModel", **SIZES, use_cache=False), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def opt() -> Declaration:
    """Learned positions counted from the mask, by a running sum, with an offset of two: does padding shift them?"""
    return model("OPTModel", **{**SIZES, "ffn_dim": INNER, "word_embed_proj_dim": HIDDEN, "use_cache": False}), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def falcon() -> Declaration:
    """One key and value for all heads: are they broadcast, or repeated by as many as the example had?"""
    return model("FalconModel", **SIZES, alibi=False, use_cache=False), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "relative positions"))
def bloom() -> Declaration:
    """Positions by alibi: a slope for each head times the count of real tokens. Does padding move it?"""
    return model("BloomModel", vocab_size=VOCABULARY, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS, use_cache=False), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "experts"))
def deepseek_v3() -> Declaration:
    """Keys and values from one narrow latent, rotation interleaved, experts chosen by groups first: is the choice right?"""
    latent = {"q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8}
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16}
    sizes = {**GROUPED, "num_key_value_heads": HEADS}
    return model("DeepseekV3Model", **sizes, **latent, **experts, first_k_dense_replace=1), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "state space", "loops"))
def mamba() -> Declaration:
    """A state space: a Python loop over the tokens, each step made of the last. Is it a loop after the export?"""
    return model("MambaModel", **STATE_SPACE, state_size=4, time_step_rank=4), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "state space"))
def mamba2() -> Declaration:
    """The same in chunks, by sums of segments; text is padded to whole chunks: does the padding follow the length?"""
    heads = {"num_heads": 8, "head_dim": 8, "n_groups": 2, "state_size": 4}
    return model("Mamba2Model", **STATE_SPACE, **heads, chunk_size=4), (), text()


@case(dims=TEXT, topics=("transformers", "text", "decoder", "loops"))
def rwkv() -> Declaration:
    """Attention as a recurrence with a running maximum, written into its result row by row: who keeps the loop?"""
    sizes = {"hidden_size": HIDDEN, "attention_hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS}
    return model("RwkvModel", **sizes, vocab_size=VOCABULARY, context_length=64, use_cache=False), (), {"input_ids": text()["input_ids"]}


@case(dims=TEXT, topics=("transformers", "text", "decoder"))
def lfm2() -> Declaration:
    """Short gated convolutions in one layer, attention in the other: is the convolution causal at any length?"""
    kinds = {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3, "block_auto_adjust_ff_dim": False}
    return model("Lfm2Model", **GROUPED, **kinds), (), text()
