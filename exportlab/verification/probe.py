"""One look at an artifact: calls in a row, the last of which is held against eager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree

from .. import show
from ..cases import Sample
from ..eager import fresh, last_returned
from ..exporters import Artifact
from ..messages import first_line
from ..outcomes import Outcome
from .conditions import Conditions, Decisions
from .dependence import Dependence
from .difference import Difference, Tolerances, difference_of
from .referee import is_half, ruled
from .report import REFUSED, Check
from .values import a_rounding_away

SMALL = 10.0  # times the tolerance: what differs by less may be rounding
NUDGES = 3


@dataclass(frozen=True)
class Probe:
    """Calls in a row, the last of which is compared; `failure` is the outcome when it differs.

    Attributes:
        refusable: whether a refusal is `narrow`, as what was not seen at the export is; else it is `run`.
        values: the name of the change that made these inputs; `finite_only`: whether only finite answers of eager are held.
        why: what is said before what was seen.
    """

    name: str
    calls: tuple[Sample, ...]
    failure: Outcome
    refusable: bool = False
    values: str = ""
    finite_only: bool = False
    why: str = ""

    def check(self, outcome: Outcome, worst: float | None = None, detail: str = "") -> Check:
        """Return what was seen as a check."""
        said = self.why + detail if outcome not in (Outcome.OK, Outcome.SKIPPED) else detail
        return Check(self.name, describe(self.calls[-1]), outcome, worst, said, self.values)


@dataclass(frozen=True)
class Subject:
    """What is looked at, and the call that was exported with; `dtypes` collects those of its outputs."""

    artifact: Artifact
    module: nn.Module
    tolerances: Tolerances | None
    first: tuple[Sample, ...] = ()
    dtypes: set[torch.dtype] = field(default_factory=set)


def looked_at(probe: Probe, subject: Subject, dependence: Dependence | None = None) -> Check:
    """Run eager, then the artifact, and return the check."""
    try:
        expected = last_returned(fresh(subject.module), probe.calls)
    except Exception as error:  # noqa: BLE001 - what eager refuses is told, and nothing is asked of the artifact
        return probe.check(Outcome.SKIPPED, detail=f"{REFUSED}: {first_line(error)}")
    subject.dtypes.update(leaf.dtype for leaf in pytree.tree_leaves(expected) if isinstance(leaf, torch.Tensor))
    try:
        actual = last_returned(subject.artifact.fresh(), probe.calls)
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is what this check reports
        return probe.check(Outcome.NARROW if probe.refusable else Outcome.RUN, detail=first_line(error))
    if dependence is not None and not probe.finite_only:
        dependence.note(expected, actual)
    return _judged(probe, subject, expected, actual)


def _judged(probe: Probe, subject: Subject, expected: Any, actual: Any) -> Check:
    held = _where_finite(expected, actual) if probe.finite_only else actual
    if probe.finite_only and _nothing_finite(expected):
        return probe.check(Outcome.SKIPPED, detail="eager answers nothing finite")
    found = difference_of(expected, held, subject.tolerances)
    if not found.problem:
        return probe.check(Outcome.OK, found.worst)
    ruling = ruled(subject.module, probe.calls, expected, held) if _may_be_rounding(probe, subject, expected, found) else None
    if ruling and ruling.is_rounding:
        return probe.check(Outcome.OK, found.worst, ruling.words)
    if excuse := _excuse(probe, subject, expected):
        return probe.check(Outcome.SKIPPED, detail=excuse)
    return probe.check(probe.failure, found.worst, f"{found.problem}; {ruling.words}" if ruling else found.problem)


def _excuse(probe: Probe, subject: Subject, expected: Any) -> str:
    """Why what was made of the first sample, and differs, says nothing about the export; nothing where it does."""
    if probe.finite_only and _decided(subject, probe.calls) == _decided(subject, subject.first):
        return "what is not finite spreads otherwise: kernels do as they like, and the model decides nothing by it"
    if probe.values and _jumps(probe, subject, expected):
        return "eager itself jumps here: inputs a rounding away have another answer"
    return ""


def _decided(subject: Subject, calls: Sequence[Sample]) -> Decisions:
    return Conditions().watch(subject.module, calls)


def _may_be_rounding(probe: Probe, subject: Subject, expected: Any, found: Difference) -> bool:
    return found.times < SMALL or (found.worst > 0 and is_half(subject.module, probe.calls, expected))


def _where_finite(expected: Any, actual: Any) -> Any:
    """The answers, with eager's own where it is not finite: what kernels make of NaN and infinity is their own."""
    leaves, spec = pytree.tree_flatten(expected)
    answers, given = pytree.tree_flatten(actual)
    if spec != given:
        return actual
    return pytree.tree_unflatten([_finite(a, b) for a, b in zip(leaves, answers, strict=True)], given)


def _nothing_finite(expected: Any) -> bool:
    tensors = [leaf for leaf in pytree.tree_leaves(expected) if isinstance(leaf, torch.Tensor)]
    return bool(tensors) and not any(bool(leaf.isfinite().any()) for leaf in tensors)


def _finite(expected: Any, actual: Any) -> Any:
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor) or isinstance(actual, FakeTensor):
        return actual
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return actual
    return torch.where(expected.isfinite(), actual, expected)


def _jumps(probe: Probe, subject: Subject, expected: Any) -> bool:
    """Whether eager answers otherwise for inputs a rounding away, by no condition of its own: ties, or numbers that cancel out."""
    conditions = _without_masks(_decided(subject, probe.calls))
    for seed in range(NUDGES):
        nudged = tuple(a_rounding_away(call, seed) for call in probe.calls)
        again = difference_of(expected, last_returned(fresh(subject.module), nudged), subject.tolerances)
        if again.problem and _without_masks(_decided(subject, nudged)) == conditions:
            return True
    return False


def _without_masks(decisions: Decisions) -> Decisions:
    return [(site, value) for site, value in decisions if site.kind != "mask"]


def describe(sample: Sample) -> str:
    """Return the arguments in a few characters: dtype and shape of each tensor, other values as they are."""
    return ", ".join(_described(leaf) for leaf in sample.leaves())


def _described(leaf: Any) -> str:
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    return show.annotation(str(leaf.dtype).removeprefix("torch."), leaf.shape)
