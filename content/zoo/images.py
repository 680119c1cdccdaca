"""Image models of the transformers library. torchvision's models are in vision, images with text in modalities."""

from __future__ import annotations

from exportlab.cases import Declaration, case
from exportlab.specs import tensor

from .tiny import ANY_IMAGE, BLOCKS, HEADS, HIDDEN, IMAGE, INNER, PATCHES, image, model


@case(dims=IMAGE, topics=("transformers", "vision"))
def vit() -> Declaration:
    """Patches and a class token: is the token repeated for the current batch or that of the example?"""
    return model("ViTModel", **PATCHES), (), image(32, 32)


@case(dims=IMAGE, topics=("transformers", "vision"))
def deit() -> Declaration:
    """A second token for distillation: are both before the patches at any batch size?"""
    return model("DeiTModel", **PATCHES), (), image(32, 32)


@case(dims=IMAGE, topics=("transformers", "vision", "relative positions"))
def beit() -> Declaration:
    """A table of biases per pair of patches, looked up by a constant index: is it folded to a constant?"""
    return model("BeitModel", **PATCHES, use_relative_position_bias=True), (), image(32, 32)


@case(dims=ANY_IMAGE, topics=("transformers", "vision", "resize"))
def dinov2() -> Declaration:
    """Learned positions are resized bicubically to the image's grid: at run time or to the example's grid?"""
    return model("Dinov2Model", **PATCHES), (), image("height", "width")


@case(dims=IMAGE, topics=("transformers", "vision"))
def clipv() -> Declaration:
    """A norm before the layers, another on the first token, GELU by a sigmoid: is each in its place?"""
    return model("CLIPVisionModel", **PATCHES), (), image(32, 32)


@case(dims=IMAGE, topics=("transformers", "vision", "sliding window"))
def swin() -> Declaration:
    """Windows shifted by a roll over a padded grid: are mask and padding exported?"""
    sizes = {"image_size": 36, "patch_size": 2, "window_size": 4, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4]}
    return model("SwinModel", **sizes), (), image(36, 36)


@case(dims=IMAGE, topics=("transformers", "vision", "sliding window"))
def swinv2() -> Declaration:
    """Cosine attention with a clamped scale and biases from a small network: is that network folded or run?"""
    sizes = {"image_size": 32, "patch_size": 2, "window_size": 4, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4]}
    return model("Swinv2Model", **sizes), (), image(32, 32)


@case(dims=ANY_IMAGE, topics=("transformers", "vision"))
def convnext() -> Declaration:
    """Depthwise convolutions, norms over channels first and last: are height and width dynamic?"""
    return model("ConvNextModel", hidden_sizes=[8, 16, 24], depths=[1, 1, 1], num_stages=3), (), image("height", "width")


@case(dims=ANY_IMAGE, topics=("transformers", "vision"))
def resnet() -> Declaration:
    """Batch norms after convolutions and a sum of two branches: is each norm folded into its own convolution?"""
    return model("ResNetModel", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2]), (), image("height", "width")


@case(dims=ANY_IMAGE, topics=("transformers", "vision"))
def segformer() -> Declaration:
    """Overlapping patches, keys from a smaller grid than queries: do four convolution sizes follow the image?"""
    sizes = {"num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [8, 16], "num_attention_heads": [1, 2], "decoder_hidden_size": 16}
    stages = {"sr_ratios": [2, 1], "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2]}
    return model("SegformerModel", **sizes, **stages), (), image("height", "width")


@case(dims=IMAGE, topics=("transformers", "vision"))
def mobilenetv2() -> Declaration:
    """TensorFlow-style padding, more at the end, and clamped activations: does each layer pad correctly?"""
    return model("MobileNetV2Model", depth_multiplier=0.25, min_depth=4, depth_divisible_by=4), (), image(32, 48)


@case(dims=ANY_IMAGE, topics=("transformers", "vision", "detection", "resize"))
def yolos() -> Declaration:
    """A detector with only tokens, positions resized in every layer: do the boxes follow the image size?"""
    sizes = {**BLOCKS, "image_size": [32, 48], "patch_size": 8, "num_detection_tokens": 5, "use_mid_position_embeddings": True}
    return model("YolosForObjectDetection", "YolosConfig", **sizes), (), image("height", "width")


@case(dims=ANY_IMAGE, topics=("transformers", "vision", "detection"))
def detr() -> Declaration:
    """Queries attend to a grid with positions summed over a mask: is the mask built for the current image?"""
    from transformers import ResNetConfig

    backbone = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"])
    encoder = {"encoder_layers": 1, "encoder_ffn_dim": INNER, "encoder_attention_heads": HEADS}
    decoder = {"decoder_layers": 1, "decoder_ffn_dim": INNER, "decoder_attention_heads": HEADS}
    sizes = {"d_model": HIDDEN, "num_queries": 5, "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
    return (
        model("DetrForObjectDetection", "DetrConfig", **sizes, **encoder, **decoder, backbone_config=backbone),
        (),
        image("height", "width"),
    )


@case(dims=IMAGE, topics=("transformers", "vision", "resize"))
def depth_anything() -> Declaration:
    """Tokens become maps, each resized to the next and added: are the map sizes right at every stage?"""
    from transformers import Dinov2Config

    backbone = Dinov2Config(**PATCHES, out_features=["stage1", "stage2"], reshape_hidden_states=False)
    neck = {"reassemble_hidden_size": HIDDEN, "neck_hidden_sizes": [8, 16], "reassemble_factors": [2, 1], "fusion_hidden_size": 8}
    sizes = {"patch_size": 8, "head_hidden_size": 8, "head_in_index": -1}
    return model("DepthAnythingForDepthEstimation", "DepthAnythingConfig", backbone_config=backbone, **neck, **sizes), (), image(32, 32)


@case(dims=ANY_IMAGE, topics=("transformers", "vision", "resize"))
def segformer_segments() -> Declaration:
    """A class per pixel, with all maps resized to the largest: is the size read at run time?"""
    sizes = {"num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [8, 16], "num_attention_heads": [1, 2], "decoder_hidden_size": 16}
    stages = {"sr_ratios": [2, 1], "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2]}
    return model("SegformerForSemanticSegmentation", "SegformerConfig", **sizes, **stages), (), image("height", "width")


@case(dims={"batch": (2, 3, 1), "pixels": (9, 30, 1)}, topics=("transformers", "vision", "attention"))
def perceiver() -> Declaration:
    """A few learned latents read inputs of any length: does attention work between two different lengths?"""
    sizes = {"num_latents": 4, "d_latents": 16, "d_model": 8, "num_blocks": 1, "num_self_attends_per_block": 2}
    heads = {"num_self_attention_heads": 2, "num_cross_attention_heads": 2}
    return model("PerceiverModel", **sizes, **heads), (), {"inputs": tensor("batch", "pixels", 8)}
