"""Whether outputs depend on the inputs as eager's do: an output that stays the same where eager's does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree

from ..cases import Sample
from ..outcomes import Outcome
from .difference import difference_of
from .float64_reference import run_in_float64
from .report import Check

ROUNDINGS = 16
Calls = Sequence[Sample]


@dataclass
class Moved:
    """Of one output: two calls to which eager gives different answers, if there are, and whether the artifact ever did."""

    eager: tuple[Calls, Calls] | None = None
    artifact: bool = False


@dataclass
class Dependence:
    """The first call with its answers, by their shapes, and what moved since."""

    first: dict[Any, tuple[Calls, list[Any], list[Any]]] = field(default_factory=dict)
    moved: dict[int, Moved] = field(default_factory=dict)

    def note(self, calls: Calls, expected: Any, actual: Any) -> None:
        """Take in the answers to calls; those of another structure, or without data, say nothing."""
        wanted, given = pytree.tree_leaves(expected), pytree.tree_leaves(actual)
        if len(wanted) != len(given) or any(isinstance(leaf, FakeTensor) for leaf in given):
            return
        before = self.first.setdefault(tuple(getattr(leaf, "shape", None) for leaf in wanted), (calls, wanted, given))
        for i, (eager, answer) in enumerate(zip(wanted, given, strict=True)):
            moved = self.moved.setdefault(i, Moved())
            if moved.eager is None and _another(before[1][i], eager):
                moved.eager = before[0], calls
            moved.artifact |= not _same(before[2][i], answer)

    def checks(self, module: nn.Module) -> list[Check]:
        """Return what is told: nothing where every output depends on the inputs as eager's does, rounding left out."""
        still = [i for i, moved in self.moved.items() if moved.eager and not moved.artifact and _moves(module, moved.eager, i)]
        return [Check("depends on inputs", "", Outcome.WRONG, detail=f"output {i} stays the same, eager's does not") for i in still]


def _moves(module: nn.Module, pair: tuple[Calls, Calls], output: int) -> bool:
    """Whether the answers differ in float64 too, and not by what rounding made of nothing."""
    try:
        one, other = (pytree.tree_leaves(run_in_float64(module, calls))[output] for calls in pair)
    except Exception:  # noqa: BLE001 - what cannot be computed so stands as it was seen
        return True
    return not isinstance(one, torch.Tensor) or _another(one.float(), other.float())


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
