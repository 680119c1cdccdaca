"""Attention: masks, heads, positions, caches, torch's own layers. Not here: whole language models, which are in decoders."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exportlab.cases import Declaration, case
from exportlab.specs import TensorSpec, flags, integers, tensor

LENGTHS = {"batch": (2, 3, 1, 4), "seq": (5, 7, 1, 3)}


def heads(count: int, length: str) -> TensorSpec:
    """Queries, keys or values of `count` heads of eight features."""
    return tensor("batch", count, length, 8)


@case(dims=LENGTHS, topics=("attention", "dynamic shapes"))
def causal_attention() -> Declaration:
    """`is_causal=True`: is the triangle as large as the sequence, at every length?"""

    class Causal(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Causal(), (heads(2, "seq"), heads(2, "seq"), heads(2, "seq"))


@case(dims={"batch": (2, 3, 1, 4), "queries": (3, 2, 1, 5), "keys": (5, 7, 1, 4)}, topics=("attention", "silence"))
def causal_rectangle() -> Declaration:
    """More keys than queries, or fewer, and causal: from which corner does the triangle start?"""

    class Rectangle(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)

    return Rectangle(), (heads(2, "queries"), heads(2, "keys"), heads(2, "keys"))


@case(dims=LENGTHS, topics=("attention", "masks", "silence"))
def attention_with_flags() -> Declaration:
    """A boolean mask says who is seen, not who is hidden: is it read so?"""

    class WithFlags(nn.Module):
        def forward(self, x: Tensor, seen: Tensor) -> Tensor:
            first = torch.arange(x.shape[2]) == 0
            return F.scaled_dot_product_attention(x, x, x, attn_mask=((seen > 0) | first)[:, None, None, :])

    return WithFlags(), (heads(2, "seq"), integers("batch", "seq", high=2))


@case(dims=LENGTHS, topics=("attention", "masks"))
def attention_with_bias() -> Declaration:
    """A mask of floats is added to the scores, one for each head: is it broadcast right?"""

    class WithBias(nn.Module):
        def forward(self, x: Tensor, bias: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(x, x, x, attn_mask=bias, dropout_p=0.0)

    return WithBias(), (heads(2, "seq"), tensor(2, "seq", "seq"))


@case(dims=LENGTHS, topics=("attention", "masks", "nan", "silence"))
def row_that_sees_nothing() -> Declaration:
    """Every key is hidden from a row: zeros in eager, and in the file?"""

    class SeesNothing(nn.Module):
        def forward(self, x: Tensor, seen: Tensor) -> Tensor:
            mask = (seen > 0)[:, None, :, None].expand(-1, -1, -1, x.shape[2])
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    return SeesNothing(), (heads(2, "seq"), integers("batch", "seq", high=2))


@case(dims=LENGTHS, topics=("attention", "masks", "nan", "silence"))
def softmax_that_sees_nothing() -> Declaration:
    """The same by hand, with `masked_fill(-inf)`, is NaN, and is then replaced: does the NaN arise in the file?"""

    class ByHand(nn.Module):
        def forward(self, x: Tensor, seen: Tensor) -> Tensor:
            scores = (x @ x.transpose(1, 2)).masked_fill(~seen[:, :, None], -math.inf)
            weights = scores.softmax(-1)
            return torch.where(weights.isnan(), 7.0, weights) @ x

    return ByHand(), (tensor("batch", "seq", 8), flags("batch", "seq"))


@case(dims=LENGTHS, topics=("attention",))
def grouped_heads() -> Declaration:
    """Six heads of queries share two of keys and values: are they repeated in the right order?"""

    class Grouped(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return Grouped(), (heads(6, "seq"), heads(2, "seq"), heads(2, "seq"))


@case(dims={"batch": (2, 3, 1, 4), "seq": (3, 2, 1, 5), "past": (4, 6, 1, 0)}, topics=("attention", "cache"))
def cache_in_and_out() -> Declaration:
    """Keys and values of the past come in, longer ones go out: do both lengths move without each other?"""

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
    """New keys are written into a long cache at positions that are an input: is the cache of the caller spared?"""

    class Written(nn.Module):
        def forward(self, x: Tensor, cache: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
            cache = cache.index_copy(2, positions + torch.arange(x.shape[2]), x)
            seen = torch.arange(cache.shape[2]) <= (positions + torch.arange(x.shape[2]))[:, None]
            return F.scaled_dot_product_attention(x, cache, cache, attn_mask=seen), cache

    return Written(), (heads(2, "seq"), tensor("batch", 2, 12, 8), integers(1, high=7))


@case(dims=LENGTHS, topics=("attention", "layers", "masks"))
def multihead_attention() -> Declaration:
    """`nn.MultiheadAttention` with padding and its weights returned: are they the averages over the heads?"""

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
    """Keys and values of other widths than the queries, time in front, one weight for each head: does it convert?"""

    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 4, kdim=6, vdim=7, add_bias_kv=True, add_zero_attn=True)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            return self.attention(q, k, v, average_attn_weights=False)

    return Cross(), (tensor("queries", "batch", 16), tensor("keys", "batch", 6), tensor("keys", "batch", 7))


@case(dims=LENGTHS, topics=("attention", "layers"))
def encoder_layer() -> Declaration:
    """Eager takes a fast path of one fused kernel: is the export of the slow one the same?"""
    return nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True), (tensor("batch", "seq", 16),)


@case(dims=LENGTHS, topics=("attention", "masks", "data-dependent", "silence"))
def encoder_with_padding() -> Declaration:
    """With padding, eager makes a nested tensor and returns zeros, or fewer steps: what does the file return?"""

    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            return self.encoder(x, src_key_padding_mask=torch.arange(x.shape[1]) >= lengths[:, None])

    return Padded(), (tensor("batch", "seq", 16), integers("batch", low=1, high=6))


@case(dims={"batch": (2, 3, 1, 4), "queries": (3, 2, 1, 5), "keys": (5, 7, 1, 4)}, topics=("attention", "layers", "masks"))
def decoder_layer() -> Declaration:
    """A decoder layer with its causal mask made in `forward`: is `tgt_is_causal` found out by looking at values?"""

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
    """Positions turn pairs of features, by sines and cosines made for the length: are they made anew?"""

    class Rotary(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            angles = torch.outer(torch.arange(x.shape[2]).float(), 10.0 ** -torch.arange(4.0))
            turned = torch.cat([angles, angles], -1)
            left, right = x.chunk(2, dim=-1)
            return x * turned.cos() + torch.cat([-right, left], -1) * turned.sin()

    return Rotary(), (heads(2, "seq"),)


@case(dims=LENGTHS, topics=("attention", "positions", "complex"))
def rotary_complex() -> Declaration:
    """The same by complex numbers, `polar` and `view_as_complex`: what becomes of them?"""

    class Rotary(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            angles = torch.outer(torch.arange(x.shape[2]).float(), 10.0 ** -torch.arange(4.0))
            turns = torch.polar(torch.ones_like(angles), angles)
            pairs = torch.view_as_complex(x.unflatten(-1, (4, 2)))
            return torch.view_as_real(pairs * turns).flatten(-2)

    return Rotary(), (heads(2, "seq"),)


@case(dims=LENGTHS, topics=("attention", "positions"))
def attention_with_linear_biases() -> Declaration:
    """ALiBi: scores fall with the distance, for each head at another rate: do the distances follow the length?"""

    class Alibi(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            places = torch.arange(x.shape[2])
            slopes = 2.0 ** -torch.arange(1, x.shape[1] + 1)
            bias = -slopes[:, None, None] * (places[:, None] - places).abs()
            return F.scaled_dot_product_attention(x, x, x, attn_mask=bias)

    return Alibi(), (heads(4, "seq"),)


@case(dims=LENGTHS, topics=("attention", "positions", "casts"))
def relative_buckets() -> Declaration:
    """T5's distances in buckets: integers through a logarithm and back, rounded towards zero. Always the same bucket?"""

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
    """Each position sees two before itself: is the band of the mask made for the length of the call?"""

    class Window(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            full = torch.ones(x.shape[2], x.shape[2])
            band = full.tril().triu(-2)
            return F.scaled_dot_product_attention(x, x, x, attn_mask=band.log())

    return Window(), (heads(2, "seq"),)


@case(dims=LENGTHS, topics=("attention", "einsum"))
def linear_attention() -> Declaration:
    """Attention without a softmax, by three `einsum`s and a running sum: do all axes keep their names?"""

    class LinearAttention(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k = F.elu(q) + 1, F.elu(k) + 1
            state = torch.einsum("bhsd,bhse->bhsde", k, v).cumsum(2)
            scale = torch.einsum("bhsd,bhsd->bhs", q, k.cumsum(2))
            return torch.einsum("bhsd,bhsde->bhse", q, state) / scale[..., None]

    return LinearAttention(), (heads(2, "seq"), heads(2, "seq"), heads(2, "seq"))
