"""Tiny models of the transformers library with random weights, and their inputs. No cases, no pretrained weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from exportlab.specs import BuiltSpec, TensorSpec, built, integers, tensor

VOCABULARY, HIDDEN, INNER, LAYERS, HEADS, KEY_HEADS, LONGEST = 64, 32, 48, 2, 4, 2, 64
HEAD = HIDDEN // HEADS
BLOCKS = {"hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
SIZES = {
    **BLOCKS,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": LONGEST,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SIZES, "num_key_value_heads": KEY_HEADS, "use_cache": False}
PATCHES = {**BLOCKS, "image_size": 32, "patch_size": 8}

TEXT = {"batch": (2, 4, 1), "seq": (7, 10, 1)}
IMAGE = {"batch": (2, 3, 1)}
ANY_IMAGE = {**IMAGE, "height": (32, 48, 64), "width": (48, 32, 80)}


def model(name: str, config: str = "", **options: Any) -> nn.Module:
    """A transformers model with random weights large enough that a wrong mask changes the result."""
    import transformers

    return weighted(getattr(transformers, name)(getattr(transformers, config or name.removesuffix("Model") + "Config")(**options)))


def weighted(made: nn.Module) -> nn.Module:
    """The module with such weights."""
    with torch.no_grad():
        for weight in made.parameters():
            if not weight.numel():
                continue
            spread = weight[0].numel() ** -0.5 if weight.dim() > 1 else 0.1
            weight.copy_(torch.randn_like(weight) * spread + (weight.mean() if weight.dim() == 1 else 0))
    return made


def text(ids: str = "input_ids", mask: str = "attention_mask", axis: str = "seq") -> dict[str, TensorSpec]:
    """Tokens and their attention mask."""
    return {ids: integers("batch", axis, high=VOCABULARY), mask: TensorSpec(("batch", axis), padded)}


def padded(shape: tuple[int, ...], _: torch.Generator) -> Tensor:
    """A token mask with rows padded at the end, at the start (fully hidden in a causal mask), nowhere and everywhere."""
    mask = torch.ones(shape, dtype=torch.int64)
    cut = min(2, shape[1] - 1)
    mask[0::4, shape[1] - cut :] = 0
    mask[1::4, :cut] = 0
    mask[3::4] = 0
    return mask


def image(*size: int | str) -> dict[str, TensorSpec]:
    """Pixels of an image of this height and width."""
    return {"pixel_values": tensor("batch", 3, *size)}


def padded_at_start(shape: tuple[int, ...], _: torch.Generator) -> Tensor:
    """A mask over past and new tokens. Every second row is padded at the start, as in batched generation."""
    mask = torch.ones(shape, dtype=torch.int64)
    mask[1::2, : shape[1] - 2] = 0
    return mask


def past(heads: int = KEY_HEADS, length: int | str = "past", layers: int = LAYERS) -> list[tuple[TensorSpec, TensorSpec]]:
    """Keys and values of each layer for past tokens."""
    return [(tensor("batch", heads, length, HEAD), tensor("batch", heads, length, HEAD)) for _ in range(layers)]


def cached(pairs: Iterable[tuple[TensorSpec, TensorSpec]]) -> BuiltSpec:
    """A `DynamicCache` of these keys and values, registered with torch.export."""
    from transformers import DynamicCache
    from transformers.integrations.executorch import register_dynamic_cache_export_support

    register_dynamic_cache_export_support()
    return built(lambda *layers: DynamicCache(layers), *pairs)
