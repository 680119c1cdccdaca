"""Whether outputs depend on the inputs as eager's do: an output that is always the same where eager's is not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree

from ..outcomes import Outcome
from .difference import difference_of
from .report import Check

ROUNDINGS = 16


@dataclass
class Dependence:
    """The first answers by shapes, and of each output whether eager's, and whether the artifact's, was ever another."""

    first: dict[Any, tuple[list[Any], list[Any]]] = field(default_factory=dict)
    moved: dict[int, list[bool]] = field(default_factory=dict)

    def note(self, expected: Any, actual: Any) -> None:
        """Take in one call's answers; answers of another structure, or without data, say nothing."""
        wanted, given = pytree.tree_leaves(expected), pytree.tree_leaves(actual)
        if len(wanted) != len(given) or any(isinstance(leaf, FakeTensor) for leaf in given):
            return
        key = tuple(getattr(leaf, "shape", None) for leaf in wanted)
        before = self.first.setdefault(key, (wanted, given))
        for i, (eager, answer) in enumerate(zip(wanted, given, strict=True)):
            moved = self.moved.setdefault(i, [False, False])
            moved[0] |= _another(before[0][i], eager)
            moved[1] |= not _same(before[1][i], answer)

    def checks(self) -> list[Check]:
        """Return what is told: nothing where every output depends on the inputs as eager's does."""
        still = [i for i, (eager, answer) in self.moved.items() if eager and not answer]
        return [Check("depends on inputs", "", Outcome.WRONG, detail=f"output {i} stays the same, eager's does not") for i in still]


def _another(a: Any, b: Any) -> bool:
    """Whether two answers differ by more than a few roundings of the largest of their numbers."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor) or not a.is_floating_point() or not a.numel():
        return bool(difference_of(a, b).problem)
    largest = float(torch.stack([t.double().nan_to_num(posinf=0, neginf=0).abs().max() for t in (a, b)]).max())
    return bool(difference_of(a, b, {a.dtype: (0.0, ROUNDINGS * torch.finfo(a.dtype).eps * largest)}).problem)


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a is b or bool(a == b)
    return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | (a.isnan() & b.isnan())).all())
