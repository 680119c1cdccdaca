"""The cross entropy of a linear layer, which torch computes in chunks of the batch."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules import linear_cross_entropy as _registers  # noqa: F401 - the operators, which torch does when one is first called

from ..build.dtypes import FLOATS
from ..build.graph import Graph, Tensor
from ..errors import Untranslated
from ..translate.registry import translates
from .linear import linear
from .loss import MEAN, NONE, SUM, cross_entropy_loss

torch_nn = torch.ops.torch_nn
REDUCTIONS = {"mean": MEAN, "sum": SUM}


@translates(torch_nn._linear_cross_entropy_batch_chunked.default)
def linear_cross_entropy(
    g: Graph, x: Tensor, linear_weight: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None,
    reduction: str, ignore_index: int, label_smoothing: float, *_: Any,
) -> list[Tensor | None]:  # fmt: skip
    """linear_cross_entropy(x, w, y, b?, …) → linear and cross_entropy_loss, of the whole batch at once; without gradients."""
    if any(user.args[1] != 0 and user.users for user in g.at.users):
        raise Untranslated("its gradients are read: only its first result is translated")
    found = _loss(g, x, linear_weight, target, bias, weight, REDUCTIONS[reduction], ignore_index, label_smoothing)
    return [found, None, None, None]


@translates(torch_nn._linear_cross_entropy_batch_chunked_no_reduction.default)
def linear_cross_entropy_of_each(
    g: Graph, x: Tensor, linear_weight: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None, ignore_index: int, *_: Any
) -> Tensor:
    """linear_cross_entropy(x, w, y, b?, …) of each row → linear and cross_entropy_loss, of the whole batch at once."""
    return _loss(g, x, linear_weight, target, bias, weight, NONE, ignore_index, 0.0)


def _loss(
    g: Graph, x: Tensor, linear_weight: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None,
    reduction: int, ignore_index: int, label_smoothing: float,
) -> Tensor:  # fmt: skip
    if target.dtype in FLOATS:
        raise Untranslated("probabilities as the target")
    logits = g.sized(linear(g, x, linear_weight, bias), (x.sizes[0], linear_weight.sizes[0]))
    return cross_entropy_loss(g, logits, target, weight, reduction, ignore_index, label_smoothing)
