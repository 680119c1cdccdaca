"""Find outputs that are constant in the exported model but depend on the inputs in eager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.fake_tensors import FakeTensor

from ..cases import Sample
from ..outcomes import Outcome
from .difference import difference_of
from .float64_reference import run_in_float64
from .report import Check

ROUNDINGS = 16
Calls = Sequence[Sample]


@dataclass
class Moved:
    """For one output: two calls with different results in eager, if any, and whether the artifact's results ever differed."""

    eager: tuple[Calls, Calls] | None = None
    artifact: bool = False


@dataclass
class Dependence:
    """The first call and results for each set of output shapes, and the changes in later calls."""

    first: dict[Any, tuple[Calls, list[Any], list[Any]]] = field(default_factory=dict)
    moved: dict[int, Moved] = field(default_factory=dict)

    def note(self, calls: Calls, expected: Any, actual: Any) -> None:
        """Record the results of a call. Results with another structure or without data are ignored."""
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
        """Return a failed check for each output that is constant, although eager's changes by more than rounding."""
        still = [i for i, moved in self.moved.items() if moved.eager and not moved.artifact and _moves(module, moved.eager, i)]
        return [Check("depends on inputs", "", Outcome.WRONG, detail=f"output {i} stays the same, eager's does not") for i in still]


def _moves(module: nn.Module, pair: tuple[Calls, Calls], output: int) -> bool:
    """Whether the results also differ in float64, so that the difference isn't rounding around zero."""
    try:
        one, other = (pytree.tree_leaves(run_in_float64(module, calls))[output] for calls in pair)
    except Exception:  # noqa: BLE001 - not computable in float64, so trust the first observation
        return True
    return not isinstance(one, torch.Tensor) or _another(one.float(), other.float())


def _another(a: Any, b: Any) -> bool:
    """Whether two results differ by more than a few roundings of their largest element."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor) or not a.is_floating_point() or not a.numel():
        return bool(difference_of(a, b).problem)
    largest = float(torch.stack([t.double().nan_to_num(posinf=0, neginf=0).abs().max() for t in (a, b)]).max())
    return bool(difference_of(a, b, {a.dtype: (0.0, ROUNDINGS * torch.finfo(a.dtype).eps * largest)}).problem)


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a is b or bool(a == b)
    return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | (a.isnan() & b.isnan())).all())
