"""Text encoders of the transformers library. Decoders are in decoders, encoder-decoder models in seq2seq."""

from __future__ import annotations

import torch
from torch import Tensor

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec

from .tiny import HEADS, HIDDEN, INNER, LAYERS, SIZES, TEXT, VOCABULARY, model, text


@case(dims=TEXT, topics=("transformers", "text", "attention"))
def bert_encoder() -> Declaration:
    """An encoder with an attention mask, one row of it all zeros: are batch and sequence dynamic?"""
    return model("BertModel", **SIZES), (), text()


@case(dims=TEXT, topics=("transformers", "text"))
def roberta() -> Declaration:
    """Positions come from a running sum over unpadded tokens: is it computed in the exported model?"""
    return model("RobertaModel", **SIZES), (), text()


@case(dims=TEXT, topics=("transformers", "text"))
def distilbert() -> Declaration:
    """Without token types and pooler, with its own mask: is the simplest encoder right for a row of padding?"""
    return model("DistilBertModel", vocab_size=VOCABULARY, dim=HIDDEN, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER), (), text()


@case(dims=TEXT, topics=("transformers", "text", "shared weights"))
def albert() -> Declaration:
    """One layer is called repeatedly: are its weights stored once?"""
    return model("AlbertModel", **SIZES, embedding_size=16), (), text()


@case(dims=TEXT, topics=("transformers", "text"))
def electra() -> Declaration:
    """Embeddings are narrower than the layers, with a projection: is it one Gemm at any length?"""
    return model("ElectraModel", **SIZES, embedding_size=16), (), text()


@case(dims=TEXT, topics=("transformers", "text", "attention", "relative positions"))
def deberta2() -> Declaration:
    """Scores are gathered by relative position in logarithmic buckets: is the table computed for each length?"""
    attention = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 4, "max_relative_positions": 16}
    more = {"norm_rel_ebd": "layer_norm", "share_att_key": True, "conv_kernel_size": 3}
    return model("DebertaV2Model", **SIZES, **attention, **more), (), text()


@case(dims=TEXT, topics=("transformers", "text", "attention", "sliding window"))
def modernbert() -> Declaration:
    """Every other layer has a window and another rotary angle: are both masks and both tables exported?"""
    window = {"local_attention": 4, "global_attn_every_n_layers": 2}
    return model("ModernBertModel", **SIZES, **window, cls_token_id=1, sep_token_id=2), (), text()


@case(dims=TEXT, topics=("transformers", "text", "FFT"))
def fnet() -> Declaration:
    """A Fourier transform over both axes replaces attention: does its length follow the input?"""
    return model("FNetModel", **SIZES), (), {"input_ids": text()["input_ids"]}


@case(dims=TEXT, topics=("transformers", "text", "attention", "relative positions"))
def xlnet() -> Declaration:
    """Relative positions by a reshape that shifts each row by one: does it follow the length?"""
    return model("XLNetModel", vocab_size=VOCABULARY, d_model=HIDDEN, n_layer=LAYERS, n_head=HEADS, d_inner=INNER), (), text()


@case(dims=TEXT, topics=("transformers", "text", "sliding window", "inplace"))
def longformer() -> Declaration:
    """Text is padded to whole windows, cut into overlapping chunks, written into a band: which exporters follow it?"""
    return model("LongformerModel", **SIZES, attention_window=[4, 4]), (), text()


@case(dims=TEXT, topics=("transformers", "text"))
def layoutlm() -> Declaration:
    """Each token has a box on the page, embedded by its sides and sizes: are six more lookups right?"""
    boxes = TensorSpec(("batch", "seq", 4), corners)
    return model("LayoutLMModel", **SIZES, max_2d_position_embeddings=16), (), {**text(), "bbox": boxes}


def corners(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Left, top, right and bottom of valid boxes."""
    return torch.randint(0, 16, shape, generator=generator).sort(-1).values
