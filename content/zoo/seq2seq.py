"""Encoder-decoder models of the transformers library without a cache. Those with a cache are in caches."""

from __future__ import annotations

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor

from .audio import WHISPER
from .tiny import HEAD, HEADS, HIDDEN, INNER, LAYERS, LONGEST, TEXT, VOCABULARY, model, text

PAIR = {**TEXT, "answer": (5, 3, 1)}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": HIDDEN,
    "d_ff": INNER,
    "d_kv": HEAD,
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
}
BART = {
    "vocab_size": VOCABULARY,
    "d_model": HIDDEN,
    "encoder_layers": LAYERS,
    "encoder_ffn_dim": INNER,
    "encoder_attention_heads": HEADS,
    "decoder_layers": LAYERS,
    "decoder_ffn_dim": INNER,
    "decoder_attention_heads": HEADS,
    "max_position_embeddings": LONGEST,
}


@case(dims=TEXT, topics=("transformers", "text", "relative positions"))
def t5enc() -> Declaration:
    """Biases by distance in logarithmic buckets, shared by all layers: does the table follow the length?"""
    return model("T5EncoderModel", "T5Config", **T5, use_cache=False), (), text()


@case(dims=PAIR, topics=("transformers", "text", "relative positions"))
def t5full() -> Declaration:
    """Two texts of different lengths with cross attention: are both lengths dynamic and independent?"""
    return model("T5Model", **T5, use_cache=False), (), text() | text("decoder_input_ids", "decoder_attention_mask", "answer")


@case(dims=PAIR, topics=("transformers", "text"))
def bart() -> Declaration:
    """Without a decoder input, it shifts the encoder's by one; here both are given: is the shift left out?"""
    return model("BartModel", **BART, use_cache=False), (), text() | text("decoder_input_ids", "decoder_attention_mask", "answer")


@case(dims=TEXT, topics=("transformers", "text", "inplace"))
def bart_shifted() -> Declaration:
    """The decoder's text is the encoder's, shifted into a new tensor: does the exported model shift too?"""
    return model("BartModel", **BART, use_cache=False), (), text()


@case(dims={"batch": (2, 3, 1), "answer": (5, 3, 1)}, topics=("transformers", "audio", "text"))
def whisper() -> Declaration:
    """Audio to text, with encoder and decoder in one model: is the audio length fixed and the text length dynamic?"""
    inputs = {"input_features": tensor("batch", 8, 24), "decoder_input_ids": integers("batch", "answer", high=VOCABULARY)}
    return model("WhisperForConditionalGeneration", "WhisperConfig", **WHISPER, use_cache=False), (), inputs
