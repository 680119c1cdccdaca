"""Losses, for every reduction: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from operators import check, check_further

X, Y = normal(4, 3), normal(3, 4).t().contiguous()
P, SIGNS, CLASSES = normal(4, 3).sigmoid(), normal(4, 3).sign(), torch.tensor([0, 2, 1, 1])
LOSSES = {
    "mse": (F.mse_loss, X, Y),
    "mse promoted": (F.mse_loss, X, Y.double()),
    "l1": (F.l1_loss, X, Y),
    "smooth l1": (F.smooth_l1_loss, X, Y),
    "soft margin": (F.soft_margin_loss, X, SIGNS),
    "bce": (F.binary_cross_entropy, P, 1 - P),
    "bce of 0 and 1": (F.binary_cross_entropy, torch.tensor([0.0, 1, 0.5]), torch.tensor([0.0, 0, 1])),
    "bce with logits": (F.binary_cross_entropy_with_logits, 40 * X, P),
    "kl": (F.kl_div, X, torch.tensor([[0.0, 1, 2]] * 4)),
    "hinge": (F.hinge_embedding_loss, X, SIGNS),
    "margin ranking": (F.margin_ranking_loss, X, Y, SIGNS),
    "triplet": (F.triplet_margin_loss, X, Y, P),
    "cosine embedding": (F.cosine_embedding_loss, X, Y, SIGNS[:, 0].contiguous()),
    "poisson": (F.poisson_nll_loss, X, 4 * P),
    "multi margin": (F.multi_margin_loss, X, CLASSES),
    "multi margin of one": (F.multi_margin_loss, X[0], CLASSES[:1]),
    "multi margin of a number": (F.multi_margin_loss, X[0, 0], CLASSES[0]),
    "margin ranking of integers": (F.margin_ranking_loss, CLASSES, CLASSES * 2, CLASSES - 1),
    "triplet of integers": (F.triplet_margin_loss, CLASSES, CLASSES * 2, CLASSES + 1),
    "cosine embedding of integers": (F.cosine_embedding_loss, CLASSES.view(2, 2), CLASSES.view(2, 2) + 1, torch.tensor([1, -1])),
    "poisson of integers": (F.poisson_nll_loss, CLASSES, CLASSES + 1),
    "nll": (F.nll_loss, X, CLASSES),
    "cross entropy": (F.cross_entropy, X, CLASSES),
    "cross entropy of one": (F.cross_entropy, X[0], CLASSES[0]),
    "cross entropy of probabilities": (F.cross_entropy, X, P),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_give_what_eager_gives_for_every_reduction(name: str) -> None:
    function, *args = LOSSES[name]
    check(lambda *given: [function(*given, reduction=r) for r in ("none", "mean", "sum")], *args, dynamic=True, options=OWN)


WEIGHTED = {
    "nll 2d": (F.nll_loss, normal(2, 3, 4, 5), torch.arange(40).reshape(2, 4, 5) % 3, {"weight": P[0], "ignore_index": 1}),
    "cross entropy smoothed": (F.cross_entropy, X, CLASSES, {"weight": P[0], "ignore_index": 2, "label_smoothing": 0.1}),
    "cross entropy 2d": (F.cross_entropy, normal(2, 3, 4, 5), torch.arange(40).reshape(2, 4, 5) % 3, {"label_smoothing": 0.2}),
    "cross entropy of probabilities": (F.cross_entropy, X, P, {"weight": P[0], "label_smoothing": 0.2}),
    "all ignored": (F.cross_entropy, X, torch.full((4,), -100), {}),
    "bce": (F.binary_cross_entropy, P, 1 - P, {"weight": P}),
    "bce with logits": (F.binary_cross_entropy_with_logits, X, P, {"weight": P[0], "pos_weight": P[1]}),
    "smooth l1": (F.smooth_l1_loss, X, Y, {"beta": 0.3}),
    "huber": (F.huber_loss, X, Y, {"delta": 0.4}),
    "kl of logarithms": (F.kl_div, X, Y, {"log_target": True}),
    "triplet swapped": (F.triplet_margin_loss, X, Y, P, {"swap": True, "p": 1.0}),
    "poisson in full": (F.poisson_nll_loss, P, 4 * P, {"full": True, "log_input": False}),
    "multi margin": (F.multi_margin_loss, X, CLASSES, {"p": 2, "margin": 0.5, "weight": P[0]}),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weighted_losses_give_what_eager_gives(name: str) -> None:
    function, *args, options = WEIGHTED[name]
    check(lambda *tensors: function(*tensors, **options), *args, options=OWN)


FAR_BELOW_ONE = {
    "soft margin": (F.soft_margin_loss, torch.full((3,), 15.0), torch.ones(3)),
    "soft margin, too large": (F.soft_margin_loss, torch.full((3,), 95.0), -torch.ones(3)),
    "bce with logits": (F.binary_cross_entropy_with_logits, torch.full((3,), 15.0), torch.ones(3)),
}


@pytest.mark.parametrize("name", FAR_BELOW_ONE)
def test_losses_far_below_one_keep_their_digits(name: str) -> None:
    function, *args = FAR_BELOW_ONE[name]
    check_further(function, tuple(args), tuple(args), ({}, {}), rtol=1e-5, atol=0.0)
