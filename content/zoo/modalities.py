"""Models of images with text or with prompts, of the transformers library. Not here: sound with text, which is in seq2seq."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec, integers, tensor

from .tiny import GROUPED, HEADS, HIDDEN, INNER, PATCHES, SIZES, VOCABULARY, image, model

SEEN = 16  # patches of the image, each in place of one token


@case(dims={"images": (3, 2, 1), "texts": (4, 5, 1), "seq": (7, 10, 1)}, topics=("transformers", "vision", "text"))
def clip() -> Declaration:
    """Every image against every text, each read at its largest token: is the table the right way round?"""
    inputs = {"input_ids": integers("texts", "seq", high=VOCABULARY), "pixel_values": tensor("images", 3, 32, 32)}
    return model("CLIPModel", text_config=SIZES, vision_config=PATCHES, projection_dim=8), (), inputs


@case(dims={"batch": (2, 3, 1), "tokens": (20, 24, 17)}, topics=("transformers", "vision", "text"))
def llava() -> Declaration:
    """Features of the image are scattered to where the text has its token for them: by a mask whose sum must fit?"""
    from transformers import CLIPVisionConfig, LlamaConfig

    sizes = {"vision_config": CLIPVisionConfig(**PATCHES), "text_config": LlamaConfig(**GROUPED), "image_token_index": VOCABULARY - 1}
    tokens = {"input_ids": TensorSpec(("batch", "tokens"), with_image)}
    return model("LlavaModel", **sizes, vision_feature_layer=-1), (), {**tokens, **image(32, 32)}


def with_image(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Tokens, the second and those after it standing for the patches of the image."""
    tokens = torch.randint(0, VOCABULARY - 1, shape, generator=generator)
    tokens[:, 1 : SEEN + 1] = VOCABULARY - 1
    return tokens


@case(dims={"batch": (2, 3, 1), "prompts": (4, 3, 1), "points": (5, 2, 1)}, topics=("transformers", "vision", "None"))
def sam_by_points() -> Declaration:
    """Points are given, boxes and masks are None: is what stands for the absent ones in the file?"""
    labels = integers("batch", "prompts", "points", low=-1, high=2)
    prompts = {"input_points": tensor("batch", "prompts", "points", 2), "input_labels": labels, "input_boxes": None}
    return sam(), (), {**image(32, 32), **prompts}


@case(dims={"batch": (2, 3, 1), "prompts": (4, 3, 1)}, topics=("transformers", "vision", "None"))
def sam_by_boxes() -> Declaration:
    """The same model with boxes and without points: another file, since what is None has no place in either?"""
    return sam(), (), {**image(32, 32), "input_points": None, "input_labels": None, "input_boxes": tensor("batch", "prompts", 4)}


def sam() -> nn.Module:
    """A model that cuts out of an image what a prompt points at."""
    eyes = {**PATCHES, "window_size": 3, "global_attn_indexes": [1], "mlp_dim": INNER, "output_channels": HIDDEN}
    prompts = {"hidden_size": HIDDEN, "image_size": 32, "patch_size": 8, "mask_input_channels": 4}
    masks = {"hidden_size": HIDDEN, "mlp_dim": INNER, "num_attention_heads": HEADS, "iou_head_hidden_dim": 8}
    sizes = {"vision_config": {**eyes, "num_pos_feats": HIDDEN // 2}, "prompt_encoder_config": prompts, "mask_decoder_config": masks}
    return model("SamModel", **sizes)
