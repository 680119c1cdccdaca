"""Audio models of the transformers library. Models that return text are in seq2seq."""

from __future__ import annotations

from exportlab.cases import Declaration, case
from exportlab.specs import tensor

from .tiny import BLOCKS, HEADS, HIDDEN, INNER, LAYERS, VOCABULARY, model

FRAMES = {"batch": (2, 3, 1), "frames": (64, 101, 37)}
WHISPER = {
    "d_model": HIDDEN,
    "encoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "encoder_ffn_dim": INNER,
    "max_source_positions": 12,
    "num_mel_bins": 8,
    "decoder_layers": 1,
    "decoder_attention_heads": HEADS,
    "decoder_ffn_dim": INNER,
    "vocab_size": VOCABULARY,
    "pad_token_id": 0,
}


@case(dims={"batch": (2, 3, 1)}, topics=("transformers", "audio"))
def whisper_enc() -> Declaration:
    """Two convolutions and an encoder that checks for one length: does the check disappear silently?"""
    return model("WhisperModel", **WHISPER).encoder, (), {"input_features": tensor("batch", 8, 24)}


@case(dims=FRAMES, topics=("transformers", "audio"))
def wav2vec2() -> Declaration:
    """Convolutions shorten a waveform, and one with weight norm computes positions: is the norm computed only once?"""
    convolutions = {"conv_dim": (16, 16), "conv_kernel": (5, 3), "conv_stride": (3, 2), "num_conv_pos_embeddings": 8}
    return (
        model("Wav2Vec2Model", **BLOCKS, **convolutions, num_conv_pos_embedding_groups=2),
        (),
        {"input_values": tensor("batch", "frames")},
    )


@case(dims=FRAMES, topics=("transformers", "audio", "loops"))
def encodec() -> Declaration:
    """Audio to codes: padding to whole frames, an LSTM over time, nearest codes. Is time dynamic?"""
    sizes = {"num_filters": 4, "hidden_size": 8, "upsampling_ratios": [4, 2], "num_lstm_layers": 1, "codebook_size": 16, "codebook_dim": 8}
    return model("EncodecModel", **sizes), (), {"input_values": tensor("batch", 1, "frames")}
