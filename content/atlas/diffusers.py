"""diffusers: what denoises and what encodes images, tiny, by the classes of its configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from exportlab.cases import Case, Declaration
from exportlab.specs import integers, tensor
from exportlab.torchvisions import import_torchvision

from .library import check_installed

Sizes = dict[str, tuple[int, ...]]
BATCH: Sizes = {"batch": (2, 3, 1)}
TEXT: Sizes = {**BATCH, "text": (7, 11, 1)}
TIME = integers("batch", low=1, high=900)
TOKENS = tensor("batch", "text", 32)
BLOCKS = {"block_out_channels": (32, 64), "norm_num_groups": 8}
CODER = {**BLOCKS, "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
HEADS = {"num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4}
LATENT = tensor("batch", 4, 8, 8)


@dataclass(frozen=True, eq=False)
class Part:
    """Whether this part of a pipeline exports, with random weights."""

    model: str
    config: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> Declaration:
        """Return the model and its inputs."""
        import_torchvision()
        import diffusers

        from ..zoo.tiny import weighted

        return weighted(getattr(diffusers, self.model)(**self.config)).eval(), self.args, dict(self.kwargs)


def parts() -> list[tuple[Part, Sizes]]:
    """Return each part with the dimensions that move."""
    return [*convolutional(), *transforming()]


def convolutional() -> list[tuple[Part, Sizes]]:
    """Return the parts that are made of convolutions."""
    unet = {**BLOCKS, "sample_size": 16, "layers_per_block": 1}
    plain = {**unet, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    led = {**unet, "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"), "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D")}
    small = {"encoder_block_out_channels": (16,) * 4, "decoder_block_out_channels": (16,) * 4}
    turns = {"num_encoder_blocks": (1,) * 4, "num_decoder_blocks": (1,) * 4}
    image = tensor("batch", 3, 32, 32)
    return [
        (Part("UNet2DModel", plain, (tensor("batch", 3, 16, 16), TIME)), BATCH),
        (
            Part(
                "UNet2DConditionModel",
                {**led, "cross_attention_dim": 32, "attention_head_dim": 8},
                (tensor("batch", 4, 16, 16), TIME, TOKENS),
            ),
            TEXT,
        ),
        (Part("AutoencoderKL", {**CODER, "latent_channels": 4}, (image,)), BATCH),
        (Part("VQModel", {**CODER, "latent_channels": 3, "num_vq_embeddings": 32}, (image,)), BATCH),
        (Part("AutoencoderTiny", {**small, **turns}, (image,)), BATCH),
    ]


def transforming() -> list[tuple[Part, Sizes]]:
    """Return the parts that are transformers."""
    dit = {**HEADS, "out_channels": 8, "num_layers": 2, "norm_num_groups": 4, "sample_size": 8}
    pixart = {**dit, "cross_attention_dim": 16, "caption_channels": 32, "use_additional_conditions": False}
    sd3 = {**HEADS, "sample_size": 8, "patch_size": 2, "num_layers": 2, "out_channels": 4}
    flux = {"patch_size": 1, "in_channels": 4, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2}
    caption = {"joint_attention_dim": 32, "caption_projection_dim": 16, "pooled_projection_dim": 24}
    conditions = {"encoder_hidden_states": TOKENS, "timestep": TIME, "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}
    seconds, places, words = tensor("batch"), tensor(16, 3), tensor("text", 3)
    return [
        (
            Part(
                "DiTTransformer2DModel",
                {**dit, "num_embeds_ada_norm": 10},
                (LATENT,),
                {"timestep": TIME, "class_labels": integers("batch", low=0, high=10)},
            ),
            BATCH,
        ),
        (Part("PixArtTransformer2DModel", pixart, (LATENT,), conditions), TEXT),
        (Part("SD3Transformer2DModel", {**sd3, **caption}, (LATENT, TOKENS, tensor("batch", 24), TIME)), TEXT),
        (
            Part(
                "FluxTransformer2DModel",
                {**flux, "joint_attention_dim": 32, "pooled_projection_dim": 32, "axes_dims_rope": (4, 4, 8)},
                (tensor("batch", 16, 4), TOKENS, tensor("batch", 32, dtype=torch.float32), seconds, places, words),
            ),
            TEXT,
        ),
    ]


def cases() -> list[Case]:
    """Return a case for each part.

    Raises:
        NotInstalled: diffusers is not there.
    """
    check_installed("diffusers")
    return [Case(f"diffusers.{part.model}", part, moving, topics=("images",)) for part, moving in parts()]
