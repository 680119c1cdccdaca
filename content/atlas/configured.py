"""A model type of transformers from its configuration, shrunk by the names of its fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

LARGEST = 60_000_000  # parameters; a model that stays larger is not tiny, and says nothing more
SMALL = {
    size: names.split()
    for size, names in {
        0: "pad_token_id",
        1: "bos_token_id decoder_start_token_id first_k_dense_replace n_group topk_group n_shared_experts num_hidden_groups "
        "num_global_layers",
        2: "eos_token_id num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_encoder_layers "
        "num_decoder_layers depth num_key_value_heads num_experts_per_tok num_codebooks type_vocab_size",
        3: "num_labels",
        4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads attention_heads "
        "num_attn_heads num_local_experts num_experts n_routed_experts rotary_dim window_size attention_window time_step_rank block_size",
        8: "d_kv head_dim d_head kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim state_size ssm_state_size "
        "patch_size num_queries sliding_window",
        16: "moe_intermediate_size shared_expert_intermediate_size projection_dim codebook_size num_mel_bins",
        32: "hidden_size d_model n_embd embed_dim dim embedding_size hidden_dim model_dim emb_dim n_embed word_embed_proj_dim "
        "text_hidden_size vision_hidden_size encoder_hidden_size decoder_hidden_size d_embed vision_feature_size "
        "cross_attention_hidden_size lru_width output_hidden_size out_hidden_size image_size",
        48: "intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim n_inner d_ff mlp_dim feed_forward_hidden_size "
        "dim_feedforward d_inner",
        64: "vocab_size max_position_embeddings n_positions n_ctx max_seq_len max_source_positions max_target_positions n_vocab "
        "lm_head_size",
    }.items()
}
SIZE_OF = {name: size for size, names in SMALL.items() for name in names}
HEAD = 8  # the width of a head
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")  # set, even where they were smaller or None
OF_STAGES = ("embed_dim", "hidden_size", "num_heads", "window_size")  # of a model in stages these depend on each other
LISTS = ("layer_types", "layers_block_type", "mlp_layer_types", "attention_types")  # one entry for each layer


class NotBuilt(RuntimeError):
    """A model type cannot be made by these rules; the message says what was tried and what it came to."""


def built_tiny(kind: str) -> nn.Module:
    """Return the base model of a type, in evaluation mode.

    Raises:
        NotBuilt: none of the ways to shrink its configuration gives a model, or only a large one.
    """
    from transformers import AutoModel

    said = []
    for way, make in ways(kind):
        try:
            config = make()
            with torch.device("meta"):
                count = sum(weight.numel() for weight in AutoModel.from_config(config).parameters())
            if count > LARGEST:
                raise NotBuilt(f"{count:,} parameters")
            return AutoModel.from_config(config).eval()
        except Exception as error:  # noqa: BLE001 - whatever a foreign constructor raises is the reason that is given
            said.append(f"{way}: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")
    raise NotBuilt(f"{kind} cannot be built tiny from its configuration: {'; '.join(said)}")


def ways(kind: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the ways to make the configuration of a type, each with its name."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    made: Any = CONFIG_MAPPING[kind]
    given = {name: SIZE_OF[name] for name in inspect.signature(made.__init__).parameters if name in SIZE_OF}
    yield "shrunk", lambda: shrunk(made())
    yield "given and shrunk", lambda: shrunk(made(**given))
    yield "given", lambda: uncached(made(**given))


def shrunk(config: Any) -> Any:
    """Return the configuration, made small by the names of its fields, and those of its parts."""
    from transformers import PretrainedConfig

    in_stages = isinstance(getattr(config, "depths", None), (list, tuple))
    for name, value in list(vars(config).items()):
        if isinstance(value, PretrainedConfig):
            shrunk(value)
        elif name in TOKENS:
            setattr(config, name, SIZE_OF[name])
        elif name in SIZE_OF and type(value) is int and not (in_stages and name in OF_STAGES):
            setattr(config, name, min(SIZE_OF[name], value))
        elif name in LISTS and isinstance(value, list):
            setattr(config, name, two_of(value))
    return uncached(fitted(config))


def fitted(config: Any) -> Any:
    """Return the configuration with the sizes that others decide: heads of latent attention, of a state space, parts of a rotation."""
    heads, inner = getattr(config, "num_attention_heads", None), getattr(config, "hidden_size", None)
    if hasattr(config, "qk_rope_head_dim"):
        config.num_key_value_heads = heads
    if isinstance(expand := getattr(config, "mamba_expand", None), int) and inner:
        config.mamba_d_head = HEAD
        config.mamba_n_heads = expand * inner // HEAD
    if isinstance(expand := getattr(config, "expand", None), int) and hasattr(config, "num_heads") and inner:
        config.num_heads = expand * inner // config.head_dim
    rotation = getattr(config, "rope_parameters", None)
    if isinstance(rotation, dict):  # a section stands in the code, where the configuration has none
        turned = int(HEAD * rotation.get("partial_rotary_factor", 1)) // 2
        rotation["mrope_section"] = [turned - 2 * (turned // 3), turned // 3, turned // 3]
    return config


def two_of(kinds: list[Any]) -> list[Any]:
    """Return two entries of a list by layer, of different kinds where there are any."""
    others = [kind for kind in kinds if kind != kinds[0]]
    return [kinds[0], *others[:1], *kinds][:2] if kinds else kinds


def uncached(config: Any) -> Any:
    """Return the configuration of a model that returns no cache: this is about the architecture, not about generating."""
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return config
