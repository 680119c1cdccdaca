"""Scaled dot-product attention."""

from __future__ import annotations

import math

import torch

from ..compat.operators import aten
from ..compat.symbols import FloorDiv
from ..errors import Untranslated
from ..ir.dtypes import BOOL, DOUBLE, FLOAT
from ..ir.expressions import UNKNOWN_SIZE, Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .random import dropout
from .reduce import log_of_sum

NEARLY_LOWEST = -3.4e38  # masks a score like the lowest number of float32, −3.4028e38


@translates(aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    g: Graph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """scaled_dot_product_attention(q, k, v, mask?, dropout_p, is_causal, scale?, enable_gqa) → Attention; else Mul, MatMul, Add, Softmax.

    Attention is used for float32 and four axes, from opset 23 on. A row that is fully masked is 0, as in torch and in ONNX Runtime's
    Attention; the other operators use a Where after the Softmax for this.
    """
    # query (batch, heads, queries, width), key (batch, heads, keys, width), value (batch, heads, keys, width of values), with any batch
    # axes; with enable_gqa key and value have fewer heads; attn_mask (…, queries, keys) is boolean or added to the scores
    if dropout_p == 0 and _is_attention(g, query, key, value, attn_mask, enable_gqa):
        return _attention(g, query, key, value, attn_mask, is_causal, scale)
    if enable_gqa:
        key, value = _repeat_heads(g, key, query), _repeat_heads(g, value, query)
    bias, hidden = _bias(g, query, key, attn_mask, is_causal)
    scores = _scores(g, query, key, scale)
    weights = g.Softmax(scores if bias is None else g.Add(scores, bias), axis=-1)
    if hidden is not None:
        weights = g.Where(hidden, g.scalar(0, weights.dtype), weights)
    return g.MatMul(dropout(g, weights, dropout_p, dropout_p > 0), value)


def _is_attention(g: Graph, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, enable_gqa: bool) -> bool:
    """Return whether ONNX Runtime's Attention supports these sizes and is accurate: it adds the scores of float16 in float16."""
    if g.opset < 23 or query.dtype != FLOAT or query.rank != 4 or key.rank != 4 or value.rank != 4:
        return False
    if 0 in (*query.sizes, *key.sizes, *value.sizes) or (mask is not None and mask.rank > 4):
        return False
    batches = {str(g.shared.onnx_shape(given.sizes[:1])) for given in (query, key, value)}
    return len(batches) == 1 and key.sizes[1] == value.sizes[1] and (enable_gqa or key.sizes[1] in (1, query.sizes[1]))


def _attention(g: Graph, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """Return the attention of (batch, heads, queries, width) as one node."""
    attributes: dict[str, float] = {} if scale is None else {"scale": float(scale)}
    if is_causal:
        attributes["is_causal"] = 1
    given = None if mask is None else _expand_mask(g, mask, (query.sizes[-2], key.sizes[-2]))
    return g.Attention(query, key, value, given, **attributes)


def _expand_mask(g: Graph, mask: Tensor, lengths: tuple[Size, Size]) -> Tensor:
    """Return a mask of size (…, queries, keys), without float32's lowest number: ONNX Runtime returns 0 for a row of it."""
    sizes = mask.sizes
    if mask.dtype != BOOL:
        mask = g.cast(mask, FLOAT)
        mask = g.Where(g.Equal(mask, torch.finfo(torch.float32).min), g.scalar(NEARLY_LOWEST, FLOAT), mask)
    if g.shared.onnx_shape(sizes[-2:]) == g.shared.onnx_shape(lengths):
        return mask
    return g.Expand(mask, [1] * (len(sizes) - 2) + list(lengths))


def _scores(g: Graph, query: Tensor, key: Tensor, scale: float | None) -> Tensor:
    """Return (q·scale)·kᵀ (batch, heads, queries, keys) of q (…, queries, width), k (…, keys, width); the default scale is 1/√width.

    In float64 the scale is a vector, because ONNX Runtime fuses a single number into MatMul as float32.
    """
    length = query.sizes[-1]
    factor: float | Tensor | None = scale
    if factor is None:
        factor = 1 / math.sqrt(length) if isinstance(length, int) else g.Reciprocal(g.Sqrt(g.scalar(length, query.dtype)))
    if query.dtype == DOUBLE and isinstance(factor, float) and isinstance(length, int):
        factor = g.const(torch.full((length,), factor, dtype=torch.float64), query.dtype)
    order = [*range(key.rank - 2), key.rank - 1, key.rank - 2]
    return g.MatMul(g.Mul(query, factor), g.Transpose(key, perm=order))


def _repeat_heads(g: Graph, x: Tensor, query: Tensor) -> Tensor:
    """Return keys or values (batch, heads, length, width) with each head repeated for the query heads that share it."""
    heads, wanted = x.sizes[-3], query.sizes[-3]
    if heads in (1, wanted):
        return x
    times = wanted // heads if isinstance(heads, int) and isinstance(wanted, int) else FloorDiv(wanted, heads)
    *outer, _, length, depth = x.sizes
    expanded = g.Expand(g.Unsqueeze(x, [-3]), [*[1] * len(outer), 1, times, 1, 1])
    sizes = [*outer, wanted, length, depth]
    return g.set_sizes(g.reshape_to(g.set_sizes(expanded, (*outer, UNKNOWN_SIZE)), sizes), sizes)


def _bias(g: Graph, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> tuple[Tensor | None, Tensor | None]:
    """Return what is added to the scores, −inf where masked, and which rows are fully masked."""
    if is_causal:
        ones = g.Expand(g.const(True, BOOL), [query.sizes[-2], key.sizes[-2]])
        return _where_seen(g, g.Trilu(ones, upper=0), query), None
    if mask is None:
        return None, None
    if mask.dtype == BOOL:
        return _where_seen(g, mask, query), g.Equal(_count_seen(g, mask), 0)
    bias = g.cast(mask, query.dtype)
    return bias, g.Equal(_count_seen(g, g.Not(g.IsInf(bias, detect_positive=0))), 0)


def _count_seen(g: Graph, seen: Tensor) -> Tensor:
    """Return how many elements of each row are not masked: for ReduceMax, ONNX Runtime's shape inference would raise a TypeError."""
    return g.ReduceSum(g.cast(seen, FLOAT), [seen.rank - 1], keepdims=1)


def _where_seen(g: Graph, seen: Tensor, like: Tensor) -> Tensor:
    return g.Where(seen, g.scalar(0, like.dtype), g.scalar(-math.inf, like.dtype))


@translates(aten._scaled_dot_product_flash_attention_for_cpu.default)
def flash_attention_for_cpu(
    g: Graph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> list[Tensor]:
    """_scaled_dot_product_flash_attention_for_cpu(q, k, v, dropout_p, is_causal, mask?, scale?) → the same, and ReduceLogSumExp."""
    scores = _scores(g, query, key, scale)
    bias, _ = _bias(g, query, key, attn_mask, is_causal)
    biased = g.set_sizes(scores if bias is None else g.Add(scores, bias), (*query.sizes[:-1], key.sizes[-2]))
    logsumexp = log_of_sum(g, biased, [query.rank - 1], False)  # (batch, heads, queries)
    return [scaled_dot_product_attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale), logsumexp]


@translates(torch.ops.higher_order.flex_attention)
def flex_attention(g: Graph, *_: object, **__: object) -> Tensor:
    """flex_attention as one operator is refused: its arguments are functions, which a capture of the module calls."""
    raise Untranslated(
        "its arguments are functions, which are only called during the capture of a module. Pass the module, without strict=True; or call "
        "scaled_dot_product_attention with a mask that adds what score_mod adds and hides what mask_mod hides"
    )
