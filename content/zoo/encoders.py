"""Encoders of text, of the transformers library. Not here: decoders, nor encoders with a decoder, which are in seq2seq."""

from __future__ import annotations

import torch
from torch import Tensor

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec

from .tiny import HEADS, HIDDEN, INNER, LAYERS, SIZES, TEXT, VOCABULARY, model, text


@case(dims=TEXT, topics=("transformers", "text", "attention"))
def bert_encoder() -> Declaration:
    """An encoder with an attention mask, one row of it all zeros: do batch and sequence move?"""
    return model("BertModel", **SIZES), (), text()


@case(dims=TEXT, topics=("transformers", "text"))
def roberta() -> Declaration:
    """Positions are counted by a running sum over the tokens that are not padding: is it a sum in the file?"""
    return model("RobertaModel", **SIZES), (), text()


@case(dims=TEXT, topics=("transformers", "text"))
def distilbert() -> Declaration:
    """No token types, no pooler, a mask of its own making: is the plainest encoder right on a row of padding?"""
    return model("DistilBertModel", vocab_size=VOCABULARY, dim=HIDDEN, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER), (), text()


@case(dims=TEXT, topics=("transformers", "text", "shared weights"))
def albert() -> Declaration:
    """One layer is called again and again: are its weights in the file once?"""
    return model("AlbertModel", **SIZES, embedding_size=16), (), text()


@case(dims=TEXT, topics=("transformers", "text"))
def electra() -> Declaration:
    """Embeddings narrower than the layers, a projection between them: is it one Gemm, at any length?"""
    return model("ElectraModel", **SIZES, embedding_size=16), (), text()


@case(dims=TEXT, topics=("transformers", "text", "attention", "relative positions"))
def deberta2() -> Declaration:
    """Attention gathers scores by relative position, in buckets by logarithm: is the table computed for each length?"""
    attention = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 4, "max_relative_positions": 16}
    more = {"norm_rel_ebd": "layer_norm", "share_att_key": True, "conv_kernel_size": 3}
    return model("DebertaV2Model", **SIZES, **attention, **more), (), text()


@case(dims=TEXT, topics=("transformers", "text", "attention", "sliding window"))
def modernbert() -> Declaration:
    """Every other layer sees a window of its neighbours, and turns by another angle: are there two masks and two tables?"""
    window = {"local_attention": 4, "global_attn_every_n_layers": 2}
    return model("ModernBertModel", **SIZES, **window, cls_token_id=1, sep_token_id=2), (), text()


@case(dims=TEXT, topics=("transformers", "text", "FFT"))
def fnet() -> Declaration:
    """A Fourier transform over both axes instead of attention: is there one in the file, and of the length that came?"""
    return model("FNetModel", **SIZES), (), {"input_ids": text()["input_ids"]}


@case(dims=TEXT, topics=("transformers", "text", "attention", "relative positions"))
def xlnet() -> Declaration:
    """Relative positions by a shift: a reshape of the scores that moves each row by one. Does it follow the length?"""
    return model("XLNetModel", vocab_size=VOCABULARY, d_model=HIDDEN, n_layer=LAYERS, n_head=HEADS, d_inner=INNER), (), text()


@case(dims=TEXT, topics=("transformers", "text", "sliding window", "inplace"))
def longformer() -> Declaration:
    """Text is padded to whole windows, cut into overlapping chunks by strides, written into a band: who follows?"""
    return model("LongformerModel", **SIZES, attention_window=[4, 4]), (), text()


@case(dims=TEXT, topics=("transformers", "text"))
def layoutlm() -> Declaration:
    """Each token has a box on the page, embedded by its sides and their differences: do six more lookups line up?"""
    boxes = TensorSpec(("batch", "seq", 4), corners)
    return model("LayoutLMModel", **SIZES, max_2d_position_embeddings=16), (), {**text(), "bbox": boxes}


def corners(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Left, top, right and bottom of boxes, none of them inside out."""
    return torch.randint(0, 16, shape, generator=generator).sort(-1).values
