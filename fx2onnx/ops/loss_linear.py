"""The cross entropy of a linear layer, which torch computes in chunks of the batch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch

from ..errors import Untranslated
from ..ir.dtypes import FLOATS
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates
from .linear import linear
from .loss import MEAN, NONE, SUM, cross_entropy_loss

REGISTERED = find_spec("torch.nn.modules.linear_cross_entropy") is not None  # torch has the operators from 2.13 on
if REGISTERED:
    import torch.nn.modules.linear_cross_entropy  # registers the operators, which torch does at the first call
REDUCTIONS = {"mean": MEAN, "sum": SUM}


def _overloads(name: str) -> list[Any]:
    return [getattr(torch.ops.torch_nn, name).default] if REGISTERED else []


@translates(*_overloads("_linear_cross_entropy_batch_chunked"))
def linear_cross_entropy(
    g: Graph, x: Tensor, linear_weight: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None,
    reduction: str, ignore_index: int, label_smoothing: float, *_: Any,
) -> list[Tensor | None]:  # fmt: skip
    """linear_cross_entropy(x, w, y, b?, …) → linear and cross_entropy_loss for the whole batch at once, without gradients."""
    if any(user.args[1] != 0 and user.users for user in g.at.users):
        raise Untranslated("only its first result is translated, but its gradients are used")
    found = _loss(g, x, linear_weight, target, bias, weight, REDUCTIONS[reduction], ignore_index, label_smoothing)
    return [found, None, None, None]


@translates(*_overloads("_linear_cross_entropy_batch_chunked_no_reduction"))
def linear_cross_entropy_of_each(
    g: Graph, x: Tensor, linear_weight: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None, ignore_index: int, *_: Any
) -> Tensor:
    """linear_cross_entropy(x, w, y, b?, …) without reduction → linear and cross_entropy_loss for the whole batch at once."""
    return _loss(g, x, linear_weight, target, bias, weight, NONE, ignore_index, 0.0)


def _loss(
    g: Graph, x: Tensor, linear_weight: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None,
    reduction: int, ignore_index: int, label_smoothing: float,
) -> Tensor:  # fmt: skip
    if target.dtype in FLOATS:
        raise Untranslated("probabilities as the target are not supported")
    logits = g.set_sizes(linear(g, x, linear_weight, bias), (x.sizes[0], linear_weight.sizes[0]))
    return cross_entropy_loss(g, logits, target, weight, reduction, ignore_index, label_smoothing)
