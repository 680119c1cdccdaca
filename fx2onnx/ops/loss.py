"""Losses, each with its reduction."""

from __future__ import annotations

import math

from ..compat.operators import aten
from ..ir.dtypes import BOOL, FLOATS, INT64
from ..ir.expressions import Number
from ..ir.float64_math import log1p_of
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .activation import softplus_of
from .nn_distance import pairwise_distance
from .norm_softmax import log_softmax

NONE, MEAN, SUM = 0, 1, 2


def reduce_loss(g: Graph, loss: Tensor, reduction: int) -> Tensor:
    """Return all elements, their mean, or their sum: ReduceMean, ReduceSum."""
    if reduction == NONE:
        return loss
    return g.ReduceMean(loss, keepdims=0) if reduction == MEAN else g.ReduceSum(loss, keepdims=0)


def floats(g: Graph, *operands: Tensor) -> list[Tensor]:
    """Return all operands as floats: integers are cast to the dtype of the result."""
    return [x if x.dtype in FLOATS else g.set_sizes(g.cast(x, g.dtype), x.sizes) for x in operands]


@translates(aten.mse_loss.default)
def mse_loss(g: Graph, x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """mse_loss(x, y) → (x − y)²: Sub, Mul."""
    x, target = g.promote(x, target)
    difference = g.Sub(x, target)
    return reduce_loss(g, g.Mul(difference, difference), reduction)


@translates(aten.l1_loss.default)
def l1_loss(g: Graph, x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """l1_loss(x, y) → |x − y|: Sub, Abs."""
    x, target = g.promote(x, target)
    return reduce_loss(g, g.Abs(g.Sub(x, target)), reduction)


@translates(aten.smooth_l1_loss.default)
def smooth_l1_loss(g: Graph, x: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Tensor:
    """smooth_l1_loss(x, y, beta) → d²/(2·beta) where d = |x − y| < beta, else d − beta/2: Sub, Abs, Mul, Less, Where."""
    if beta == 0:
        return l1_loss(g, x, target, reduction)
    return _huber(g, x, target, reduction, beta, 0.5 / beta, 1.0)


@translates(aten.huber_loss.default)
def huber_loss(g: Graph, x: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Tensor:
    """huber_loss(x, y, delta) → d²/2 where d = |x − y| ≤ delta, else delta·(d − delta/2)."""
    return _huber(g, x, target, reduction, delta, 0.5, delta)


def _huber(g: Graph, x: Tensor, target: Tensor, reduction: int, bound: float, square: float, slope: float) -> Tensor:
    x, target = g.promote(x, target)
    distance = g.Abs(g.Sub(x, target))
    beyond = g.Sub(distance, 0.5 * bound)
    beyond = beyond if slope == 1 else g.Mul(beyond, slope)
    within = g.Mul(g.Mul(distance, distance), square)
    return reduce_loss(g, g.Where(g.Less(distance, bound), within, beyond), reduction)


@translates(aten.soft_margin_loss.default)
def soft_margin_loss(g: Graph, x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """soft_margin_loss(x, y) → log1p(exp(−y·x)), which does not lose small values: Mul, Neg, Exp, …"""
    x, target = g.promote(x, target)
    return reduce_loss(g, log1p_of(g, g.Exp(g.Neg(g.Mul(target, x)))), reduction)


@translates(aten.binary_cross_entropy.default)
def binary_cross_entropy(g: Graph, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN) -> Tensor:
    """binary_cross_entropy(x, y, w?) → −w·(y·log x + (1 − y)·log(1 − x)), with logarithms of at least −100: Log, Max, Mul, Sub."""
    yes, no = (g.Max(g.Log(p), -100.0) for p in (x, g.Sub(g.scalar(1, x.dtype), x)))
    loss = g.Sub(g.Mul(g.Sub(target, 1), no), g.Mul(target, yes))
    return reduce_loss(g, loss if weight is None else g.Mul(loss, weight), reduction)


@translates(aten.binary_cross_entropy_with_logits.default)
def binary_cross_entropy_with_logits(
    g: Graph, x: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """binary_cross_entropy_with_logits(x, y, w?, p?) → w·((1 − y)·x + (1 + (p − 1)·y)·Softplus(−x))."""
    softened = softplus_of(g, g.Neg(x))
    if pos_weight is not None:
        softened = g.Mul(softened, g.Add(g.Mul(g.Sub(pos_weight, 1), target), 1))
    loss = g.Add(g.Mul(g.Sub(g.scalar(1, x.dtype), target), x), softened)
    return reduce_loss(g, loss if weight is None else g.Mul(loss, weight), reduction)


@translates(aten.kl_div.default)
def kl_div(g: Graph, x: Tensor, target: Tensor, reduction: int = MEAN, log_target: bool = False) -> Tensor:
    """kl_div(x, y, log_target) → y·(log y − x), or 0 if y is 0; exp(y)·(y − x) if log_target is set."""
    if log_target:
        return reduce_loss(g, g.Mul(g.Exp(target), g.Sub(target, x)), reduction)
    entropy = g.Where(g.Equal(target, 0), g.scalar(0, target.dtype), g.Mul(target, g.Log(target)))
    return reduce_loss(g, g.Sub(entropy, g.Mul(target, x)), reduction)


@translates(aten.poisson_nll_loss.default)
def poisson_nll_loss(g: Graph, x: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """poisson_nll_loss(x, y, log_input, full, eps) → exp(x) − y·x, or x − y·log(x + eps); `full` adds Stirling's approximation."""
    x, target = floats(g, x, target)
    loss = g.Sub(g.Exp(x), g.Mul(target, x)) if log_input else g.Sub(x, g.Mul(target, g.Log(g.Add(x, eps))))
    if full:
        half = g.Mul(g.Log(g.Mul(target, 2 * math.pi)), 0.5)
        stirling = g.Add(g.Sub(g.Mul(target, g.Log(target)), target), half)
        loss = g.Add(loss, g.Where(g.LessOrEqual(target, 1), g.scalar(0, target.dtype), stirling))
    return reduce_loss(g, loss, reduction)


@translates(aten.hinge_embedding_loss.default)
def hinge_embedding_loss(g: Graph, x: Tensor, target: Tensor, margin: float = 1.0, reduction: int = MEAN) -> Tensor:
    """hinge_embedding_loss(x, y, margin) → x if y is not −1, plus max(0, margin − x) if y is not 1: Equal, Where, Sub, Relu, Add."""
    zero = g.scalar(0, x.dtype)
    near = g.Where(g.Equal(target, -1), zero, x)
    far = g.Where(g.Equal(target, 1), zero, g.Relu(g.Sub(g.scalar(margin, x.dtype), x)))
    return reduce_loss(g, g.Add(near, far), reduction)


@translates(aten.margin_ranking_loss.default)
def margin_ranking_loss(g: Graph, x1: Tensor, x2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN) -> Tensor:
    """margin_ranking_loss(x1, x2, y, margin) → max(0, −y·(x1 − x2) + margin): Sub, Mul, Add, Relu."""
    difference = g.Sub(*g.promote(x1, x2))
    return reduce_loss(g, g.Relu(g.Add(*g.promote(g.Mul(*g.promote(g.Neg(target), difference)), margin))), reduction)


@translates(aten.triplet_margin_loss.default)
def triplet_margin_loss(
    g: Graph,
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = MEAN,
) -> Tensor:
    """triplet_margin_loss(a, p, n, margin, p, eps, swap) → max(0, margin + ‖a − p‖ − ‖a − n‖), with min(‖a − n‖, ‖p − n‖) for swap."""
    near, far = (pairwise_distance(g, anchor, other, p, eps) for other in (positive, negative))
    if swap:
        far = g.Min(far, pairwise_distance(g, positive, negative, p, eps))
    return reduce_loss(g, g.Relu(g.Add(g.Sub(near, far), margin)), reduction)


@translates(aten.cosine_embedding_loss.default)
def cosine_embedding_loss(g: Graph, x1: Tensor, x2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN) -> Tensor:
    """cosine_embedding_loss(x1, x2, y, margin) → 1 − cos if y is 1, max(0, cos − margin) if it is −1, else 0."""
    x1, x2 = floats(g, x1, x2)
    target = g.cast(target, INT64) if target.dtype == BOOL else target
    product = g.ReduceSum(g.Mul(x1, x2), [max(x1.rank, x2.rank) - 1], keepdims=0)
    squares = [g.Add(g.ReduceSum(g.Mul(x, x), [x.rank - 1], keepdims=0), 1e-12) for x in (x1, x2)]
    cosine, zero = g.Div(product, g.Sqrt(g.Mul(*squares))), g.scalar(0, x1.dtype)
    near = g.Where(g.Equal(target, 1), g.Sub(g.scalar(1, x1.dtype), cosine), zero)
    far = g.Where(g.Equal(target, -1), g.Relu(g.Sub(cosine, margin)), zero)
    return reduce_loss(g, g.Add(near, far), reduction)


@translates(aten.nll_loss_nd.default, aten.nll_loss.default, aten.nll_loss2d.default)
def nll_loss(g: Graph, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100) -> Tensor:
    """nll_loss(log p, y, w?, reduction, ignore_index) → −w·log p at y, or 0 if y is ignored: GatherElements, Where."""
    return nll_loss_forward(g, x, target, weight, reduction, ignore_index)[0]


@translates(aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def nll_loss_forward(g: Graph, x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> list[Tensor]:
    """nll_loss_forward(log p, y, w?, reduction, ignore_index) → the loss, and the sum of the weights."""
    axis = min(x.rank - 1, 1)
    kept = g.Not(g.Equal(target, ignore_index))
    zero = g.scalar(0, x.dtype)
    safe = g.Where(kept, target, g.scalar(0, target.dtype))
    picked = g.Squeeze(g.GatherElements(x, g.Unsqueeze(safe, [axis]), axis=axis), [axis])
    weights = g.Where(kept, g.scalar(1, x.dtype) if weight is None else g.Gather(weight, safe), zero)
    loss = g.Where(kept, g.Neg(picked) if weight is None else g.Mul(g.Neg(picked), weights), zero)
    total = zero if reduction == NONE else g.ReduceSum(weights, keepdims=0)
    if reduction != MEAN:
        return [reduce_loss(g, loss, reduction), total]
    return [g.Div(g.ReduceSum(loss, keepdims=0), total), total]


@translates(aten.cross_entropy_loss.default)
def cross_entropy_loss(
    g: Graph,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """cross_entropy_loss(x, y, w?, reduction, ignore_index, label_smoothing) → LogSoftmax and `nll_loss`, or −Σ y·log p."""
    axis = min(x.rank - 1, 1)
    logs = log_softmax(g, x, axis)
    if target.dtype in FLOATS:
        return _against_probabilities(g, x, logs, target, weight, reduction, label_smoothing)
    nll, total = nll_loss_forward(g, g.set_sizes(logs, x.sizes), target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return nll
    weighted = logs if weight is None else g.Mul(logs, _unsqueeze_weight(g, weight, x))
    everywhere = g.ReduceSum(g.Neg(weighted), [axis], keepdims=0)
    smooth = g.Where(g.Equal(target, ignore_index), g.scalar(0, x.dtype), everywhere)
    smooth = g.Div(g.ReduceSum(smooth, keepdims=0), total) if reduction == MEAN else reduce_loss(g, smooth, reduction)
    share = g.Div(g.scalar(label_smoothing, x.dtype), g.scalar(x.sizes[axis], x.dtype))
    return g.Add(g.Mul(nll, 1 - label_smoothing), g.Mul(smooth, share))


def _unsqueeze_weight(g: Graph, weight: Tensor, x: Tensor) -> Tensor:
    return weight if x.rank <= 2 else g.Unsqueeze(weight, list(range(1, x.rank - 1)))


def _against_probabilities(
    g: Graph, x: Tensor, logs: Tensor, target: Tensor, weight: Tensor | None, reduction: int, label_smoothing: float
) -> Tensor:
    axis = min(x.rank - 1, 1)
    classes = g.scalar(x.sizes[axis], x.dtype)
    if label_smoothing > 0:
        target = g.Add(g.Mul(target, 1 - label_smoothing), g.Div(g.scalar(label_smoothing, x.dtype), classes))
    product = g.Mul(logs, target)
    product = product if weight is None else g.Mul(product, _unsqueeze_weight(g, weight, x))
    loss = g.Neg(g.ReduceSum(product, [axis], keepdims=0))
    return reduce_loss(g, loss, reduction)


@translates(aten.multi_margin_loss.default)
def multi_margin_loss(
    g: Graph, x: Tensor, target: Tensor, p: Number = 1, margin: Number = 1, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """multi_margin_loss(x, y, p, margin, w?) → Σᵢ w[y]·max(0, margin − x[y] + xᵢ)ᵖ over i ≠ y, divided by the number of classes."""
    classes = x.sizes[-1] if x.rank else 1
    x = x if x.rank == 2 else g.set_sizes(g.reshape_to(x, (1, classes)), (1, classes))
    index = g.reshape_to(target, (x.sizes[0], 1))
    picked = g.GatherElements(x, index, axis=1)
    terms = g.Relu(g.Add(g.Sub(x, picked), margin))
    terms = terms if p == 1 else g.Mul(terms, terms)
    if weight is not None:
        terms = g.Mul(terms, g.Gather(weight, index))
    numbers = g.Range(g.scalar(0, target.dtype), g.scalar(classes, target.dtype), g.scalar(1, target.dtype))
    others = g.Where(g.Equal(numbers, index), g.scalar(0, x.dtype), terms)
    loss = reduce_loss(g, g.ReduceMean(others, [1], keepdims=0), reduction)
    return loss if reduction != NONE else g.reshape_to(g.set_sizes(loss, x.sizes[:1]), target.sizes)
