"""Models of images with text or prompts, of the transformers library. Audio with text is in seq2seq."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec, integers, tensor

from .tiny import GROUPED, HEADS, HIDDEN, INNER, PATCHES, SIZES, VOCABULARY, image, model

SEEN = 16  # patches of the image, each replacing one token


@case(dims={"images": (3, 2, 1), "texts": (4, 5, 1), "seq": (7, 10, 1)}, topics=("transformers", "vision", "text"))
def clip() -> Declaration:
    """Each image is compared with each text, read at its largest token: is the table oriented correctly?"""
    inputs = {"input_ids": integers("texts", "seq", high=VOCABULARY), "pixel_values": tensor("images", 3, 32, 32)}
    return model("CLIPModel", text_config=SIZES, vision_config=PATCHES, projection_dim=8), (), inputs


@case(dims={"batch": (2, 3, 1), "tokens": (20, 24, 17)}, topics=("transformers", "vision", "text"))
def llava() -> Declaration:
    """Image features are scattered to placeholder tokens, with a mask whose sum must match: is it exported?"""
    from transformers import CLIPVisionConfig, LlamaConfig

    sizes = {"vision_config": CLIPVisionConfig(**PATCHES), "text_config": LlamaConfig(**GROUPED), "image_token_index": VOCABULARY - 1}
    tokens = {"input_ids": TensorSpec(("batch", "tokens"), with_image)}
    return model("LlavaModel", **sizes, vision_feature_layer=-1), (), {**tokens, **image(32, 32)}


def with_image(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Tokens, of which those from the second on are placeholders for image patches."""
    tokens = torch.randint(0, VOCABULARY - 1, shape, generator=generator)
    tokens[:, 1 : SEEN + 1] = VOCABULARY - 1
    return tokens


@case(dims={"batch": (2, 3, 1), "prompts": (4, 3, 1), "points": (5, 2, 1)}, topics=("transformers", "vision", "None"))
def sam_by_points() -> Declaration:
    """Points are given, boxes and masks are None: are the default embeddings for them exported?"""
    labels = integers("batch", "prompts", "points", low=-1, high=2)
    prompts = {"input_points": tensor("batch", "prompts", "points", 2), "input_labels": labels, "input_boxes": None}
    return sam(), (), {**image(32, 32), **prompts}


@case(dims={"batch": (2, 3, 1), "prompts": (4, 3, 1)}, topics=("transformers", "vision", "None"))
def sam_by_boxes() -> Declaration:
    """The same model with boxes and without points: is it exported as a second model?"""
    return sam(), (), {**image(32, 32), "input_points": None, "input_labels": None, "input_boxes": tensor("batch", "prompts", 4)}


def sam() -> nn.Module:
    """A model that segments an image at a prompt."""
    eyes = {**PATCHES, "window_size": 3, "global_attn_indexes": [1], "mlp_dim": INNER, "output_channels": HIDDEN}
    prompts = {"hidden_size": HIDDEN, "image_size": 32, "patch_size": 8, "mask_input_channels": 4}
    masks = {"hidden_size": HIDDEN, "mlp_dim": INNER, "num_attention_heads": HEADS, "iou_head_hidden_dim": 8}
    sizes = {"vision_config": {**eyes, "num_pos_feats": HIDDEN // 2}, "prompt_encoder_config": prompts, "mask_decoder_config": masks}
    return model("SamModel", **sizes)
