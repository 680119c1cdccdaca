"""Attention: masks, heads, positions, caches, torch's own layers. Complete language models are in decoders."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec, flags, integers, tensor

LENGTHS = {"batch": (2, 3, 1, 4), "seq": (5, 7, 1, 3)}


def heads(count: int, length: str) -> TensorSpec:
    """Queries, keys or values of `count` heads with eight features."""
    return tensor("batch", count, length, 8)


@case(dims=LENGTHS, topics=("attention", "dynamic shapes"))
def causal_attention() -> Declaration:
    """`is_causal=True`: does the causal mask have the right size at every length?"""

    class Causal(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Causal(), (heads(2, "seq"), heads(2, "seq"), heads(2, "seq"))


@case(dims={"batch": (2, 3, 1, 4), "queries": (3, 2, 1, 5), "keys": (5, 7, 1, 4)}, topics=("attention", "silence"))
def causal_rectangle() -> Declaration:
    """Causal attention with more or fewer keys than queries: at which corner does the mask start?"""

    class Rectangle(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)

    return Rectangle(), (heads(2, "queries"), heads(2, "keys"), heads(2, "keys"))


@case(dims=LENGTHS, topics=("attention", "masks", "silence"))
def attention_with_flags() -> Declaration:
    """In a boolean mask, True means visible, not hidden. Is it exported that way?"""

    class WithFlags(nn.Module):
        def forward(self, x: Tensor, seen: Tensor) -> Tensor:
            first = torch.arange(x.shape[2]) == 0
            return F.scaled_dot_product_attention(x, x, x, attn_mask=((seen > 0) | first)[:, None, None, :])

    return WithFlags(), (heads(2, "seq"), integers("batch", "seq", high=2))


@case(dims=LENGTHS, topics=("attention", "masks"))
def attention_with_bias() -> Declaration:
    """A float mask with values per head is added to the scores: is it broadcast correctly?"""

    class WithBias(nn.Module):
        def forward(self, x: Tensor, bias: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(x, x, x, attn_mask=bias, dropout_p=0.0)

    return WithBias(), (heads(2, "seq"), tensor(2, "seq", "seq"))


@case(dims=LENGTHS, topics=("attention", "masks", "nan", "silence"))
def row_that_sees_nothing() -> Declaration:
    """All keys are hidden from one row, and eager returns zeros: does the exported model too?"""

    class SeesNothing(nn.Module):
        def forward(self, x: Tensor, seen: Tensor) -> Tensor:
            mask = (seen > 0)[:, None, :, None].expand(-1, -1, -1, x.shape[2])
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    return SeesNothing(), (heads(2, "seq"), integers("batch", "seq", high=2))


@case(dims=LENGTHS, topics=("attention", "masks", "nan", "silence"))
def softmax_that_sees_nothing() -> Declaration:
    """A manual `masked_fill(-inf)` and softmax gives NaN, which is then replaced: does the exported model do the same?"""

    class ByHand(nn.Module):
        def forward(self, x: Tensor, seen: Tensor) -> Tensor:
            scores = (x @ x.transpose(1, 2)).masked_fill(~seen[:, :, None], -math.inf)
            weights = scores.softmax(-1)
            return torch.where(weights.isnan(), 7.0, weights) @ x

    return ByHand(), (tensor("batch", "seq", 8), flags("batch", "seq"))


@case(dims=LENGTHS, topics=("attention",))
def grouped_heads() -> Declaration:
    """Six query heads share two key and value heads: are keys and values repeated in the right order?"""

    class Grouped(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return Grouped(), (heads(6, "seq"), heads(2, "seq"), heads(2, "seq"))


@case(dims={"batch": (2, 3, 1, 4), "seq": (3, 2, 1, 5), "past": (4, 6, 1, 0)}, topics=("attention", "cache"))
def cache_in_and_out() -> Declaration:
    """A cache is an input and, longer, an output: are both lengths dynamic and independent?"""

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(16, 48)

        def forward(self, x: Tensor, past_k: Tensor, past_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            q, k, v = self.project(x).unflatten(-1, (2, 24)).transpose(1, 2).chunk(3, -1)
            k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
            seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(past_k.shape[2])
            return F.scaled_dot_product_attention(q, k, v, attn_mask=seen), k, v

    return Cached(), (tensor("batch", "seq", 16), heads(2, "past"), heads(2, "past"))


@case(dims={"batch": (2, 3, 1, 0), "seq": (3, 2, 1, 5)}, topics=("attention", "cache", "mutation", "state"))
def cache_of_fixed_length() -> Declaration:
    """New keys are written into a fixed-size cache at given positions: does the caller's cache stay unchanged?"""

    class Written(nn.Module):
        def forward(self, x: Tensor, cache: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
            cache = cache.index_copy(2, positions + torch.arange(x.shape[2]), x)
            seen = torch.arange(cache.shape[2]) <= (positions + torch.arange(x.shape[2]))[:, None]
            return F.scaled_dot_product_attention(x, cache, cache, attn_mask=seen), cache

    return Written(), (heads(2, "seq"), tensor("batch", 2, 12, 8), integers(1, high=7))


@case(dims=LENGTHS, topics=("attention", "layers", "masks"))
def multihead_attention() -> Declaration:
    """`nn.MultiheadAttention` with padding also returns its weights: are they averaged over the heads?"""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

        def forward(self, x: Tensor, padded: Tensor) -> tuple[Tensor, Tensor]:
            hidden = padded & (torch.arange(x.shape[1]) > 0)
            return self.attention(x, x, x, key_padding_mask=hidden)

    return Attention(), (tensor("batch", "seq", 16), flags("batch", "seq"))


@case(dims={"batch": (2, 3, 1, 4), "queries": (3, 2, 1, 5), "keys": (5, 7, 1, 4)}, topics=("attention", "layers"))
def cross_attention() -> Declaration:
    """Cross attention with other key and value widths, time first, and weights per head: is it exported?"""

    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 4, kdim=6, vdim=7, add_bias_kv=True, add_zero_attn=True)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            return self.attention(q, k, v, average_attn_weights=False)

    return Cross(), (tensor("queries", "batch", 16), tensor("keys", "batch", 6), tensor("keys", "batch", 7))


@case(dims=LENGTHS, topics=("attention", "layers"))
def encoder_layer() -> Declaration:
    """Eager mode uses a fused fast path: does the exported slow path give the same result?"""
    return nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True), (tensor("batch", "seq", 16),)


@case(dims=LENGTHS, topics=("attention", "masks", "data-dependent", "silence"))
def encoder_with_padding() -> Declaration:
    """With padding, eager uses a nested tensor and returns zeros or fewer positions: what does the exported model return?"""

    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            return self.encoder(x, src_key_padding_mask=torch.arange(x.shape[1]) >= lengths[:, None])

    return Padded(), (tensor("batch", "seq", 16), integers("batch", low=1, high=6))


@case(dims={"batch": (2, 3, 1, 4), "queries": (3, 2, 1, 5), "keys": (5, 7, 1, 4)}, topics=("attention", "layers", "masks"))
def decoder_layer() -> Declaration:
    """A decoder layer whose `forward` builds the causal mask: does the capture read values to detect `tgt_is_causal`?"""

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True, norm_first=True)

        def forward(self, x: Tensor, memory: Tensor) -> Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.layer(x, memory, tgt_mask=mask)

    return Decoder(), (tensor("batch", "queries", 16), tensor("batch", "keys", 16))


@case(dims=LENGTHS, topics=("attention", "positions"))
def rotary_real() -> Declaration:
    """Rotary embedding with sines and cosines for the current length: are they computed at run time?"""

    class Rotary(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            angles = torch.outer(torch.arange(x.shape[2]).float(), 10.0 ** -torch.arange(4.0))
            turned = torch.cat([angles, angles], -1)
            left, right = x.chunk(2, dim=-1)
            return x * turned.cos() + torch.cat([-right, left], -1) * turned.sin()

    return Rotary(), (heads(2, "seq"),)


@case(dims=LENGTHS, topics=("attention", "positions", "complex"))
def rotary_complex() -> Declaration:
    """Rotary embedding with complex numbers, `polar` and `view_as_complex`: is it exported?"""

    class Rotary(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            angles = torch.outer(torch.arange(x.shape[2]).float(), 10.0 ** -torch.arange(4.0))
            turns = torch.polar(torch.ones_like(angles), angles)
            pairs = torch.view_as_complex(x.unflatten(-1, (4, 2)))
            return torch.view_as_real(pairs * turns).flatten(-2)

    return Rotary(), (heads(2, "seq"),)


@case(dims=LENGTHS, topics=("attention", "positions"))
def attention_with_linear_biases() -> Declaration:
    """ALiBi: scores decrease with distance, at a different rate per head. Do the distances follow the length?"""

    class Alibi(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            places = torch.arange(x.shape[2])
            slopes = 2.0 ** -torch.arange(1, x.shape[1] + 1)
            bias = -slopes[:, None, None] * (places[:, None] - places).abs()
            return F.scaled_dot_product_attention(x, x, x, attn_mask=bias)

    return Alibi(), (heads(4, "seq"),)


@case(dims=LENGTHS, topics=("attention", "positions", "casts"))
def relative_buckets() -> Declaration:
    """T5's buckets of distances: integers via a logarithm, rounded towards zero. Are the buckets the same?"""

    class Buckets(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Embedding(8, 2)

        def forward(self, x: Tensor) -> Tensor:
            places = torch.arange(x.shape[2])
            distance = (places[None, :] - places[:, None]).abs()
            far = 3 + (torch.log(distance.float() / 3) / math.log(5) * 5).clamp(min=0).to(torch.long)
            bucket = torch.where(distance < 3, distance, far.clamp(max=7))
            return F.scaled_dot_product_attention(x, x, x, attn_mask=self.bias(bucket).permute(2, 0, 1))

    return Buckets(), (heads(2, "seq"),)


@case(dims=LENGTHS, topics=("attention", "masks", "dynamic shapes"))
def sliding_window() -> Declaration:
    """Each position sees itself and the two before it: is the band mask built for the current length?"""

    class Window(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            full = torch.ones(x.shape[2], x.shape[2])
            band = full.tril().triu(-2)
            return F.scaled_dot_product_attention(x, x, x, attn_mask=band.log())

    return Window(), (heads(2, "seq"),)


@case(dims=LENGTHS, topics=("attention", "einsum"))
def linear_attention() -> Declaration:
    """Attention without softmax, with three `einsum`s and a running sum: are all dynamic axes kept?"""

    class LinearAttention(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k = F.elu(q) + 1, F.elu(k) + 1
            state = torch.einsum("bhsd,bhse->bhsde", k, v).cumsum(2)
            scale = torch.einsum("bhsd,bhsd->bhs", q, k.cumsum(2))
            return torch.einsum("bhsd,bhsde->bhse", q, state) / scale[..., None]

    return LinearAttention(), (heads(2, "seq"), heads(2, "seq"), heads(2, "seq"))
