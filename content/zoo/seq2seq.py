"""Encoders with a decoder, of the transformers library, without their past. Not here: the same with a cache, which are in caches."""

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
    """Biases by the distance of two tokens, in buckets by logarithm, shared by all layers: does the table grow?"""
    return model("T5EncoderModel", "T5Config", **T5, use_cache=False), (), text()


@case(dims=PAIR, topics=("transformers", "text", "relative positions"))
def t5full() -> Declaration:
    """Two texts of different lengths, attention across: does each of the two lengths move without the other?"""
    return model("T5Model", **T5, use_cache=False), (), text() | text("decoder_input_ids", "decoder_attention_mask", "answer")


@case(dims=PAIR, topics=("transformers", "text"))
def bart() -> Declaration:
    """Without a decoder's text it takes the encoder's, one place later; with both given, is the shift left out?"""
    return model("BartModel", **BART, use_cache=False), (), text() | text("decoder_input_ids", "decoder_attention_mask", "answer")


@case(dims=TEXT, topics=("transformers", "text", "inplace"))
def bart_shifted() -> Declaration:
    """The decoder's text is the encoder's, shifted by writing into a new tensor: does the file write it too?"""
    return model("BartModel", **BART, use_cache=False), (), text()


@case(dims={"batch": (2, 3, 1), "answer": (5, 3, 1)}, topics=("transformers", "audio", "text"))
def whisper() -> Declaration:
    """Sound in, text out: both halves in one file, the sound of one length, the text of any?"""
    inputs = {"input_features": tensor("batch", 8, 24), "decoder_input_ids": integers("batch", "answer", high=VOCABULARY)}
    return model("WhisperForConditionalGeneration", "WhisperConfig", **WHISPER, use_cache=False), (), inputs
