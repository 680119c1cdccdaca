"""One look at an artifact: calls in a row, the last of which is held against eager."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
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
from .dependence import Dependence
from .devices import Device, returned_on
from .difference import Difference, Tolerances, difference_of, distances
from .fast_path import WORDS as OF_THE_FAST_PATH
from .fast_path import is_of_the_fast_path
from .patience import Patience, at_most
from .referee import BEYOND, Ruling, half_in, is_beyond, ruled
from .report import NOT_JUDGED, REFUSED, ROUNDING, Check
from .sensitivity import decided, moves_as_much
from .ties import WORDS as OF_TIES
from .ties import apart_in_order, sorts
from .values import Variation

AS_GIVEN = Variation("", lambda tensor: False, lambda tensor: tensor)
UNSTABLE = f"itself more than {BEYOND:.0f} tolerances from its float64 answer"
REFUSED_UNASKED = "it rejects this size, which no sample has"
OF_NAN = "ONNX does not define where NaN is sorted"
OF_MOVEMENT = "eager itself moves as much for inputs a rounding away"
FEW = 16.0
SMALL = 10.0  # times the tolerance: what may be rounding, and what kernels may be off by for extreme values


@dataclass(frozen=True)
class Probe:
    """Calls in a row, the last of which is compared; `failure` is the outcome when it differs.

    Attributes:
        refusable: whether a refusal is `narrow`, as what was not seen at the export is; else it is `run`.
        variation: the change that made these inputs of the first sample.
        why: what is said before what was seen.
        asked: whether the samples include this size; if not, an error of the artifact is not a failure.
    """

    name: str
    calls: tuple[Sample, ...]
    failure: Outcome
    refusable: bool = False
    variation: Variation = AS_GIVEN
    why: str = ""
    asked: bool = True

    def check(self, outcome: Outcome, worst: float | None = None, detail: str = "") -> Check:
        """Return what was seen as a check."""
        said = self.why + detail if outcome not in (Outcome.OK, Outcome.SKIPPED) else detail
        return Check(self.name, describe(self.calls[-1]), outcome, worst, said, self.variation.name)

    def refused(self, why: str) -> Check:
        """Return the check of what the artifact refuses."""
        if not self.asked:
            return self.check(Outcome.SKIPPED, detail=f"{REFUSED_UNASKED}: {why}")
        return self.check(Outcome.NARROW if self.refusable else Outcome.RUN, detail=why)

    def unjudged(self, apart: float, outputs: Collection[int], why: str) -> Check:
        """Return the check of answers that differ, where eager is too inexact to judge these outputs."""
        listed = ", ".join(map(str, sorted(outputs)))
        detail = f"{NOT_JUDGED}: output {listed} differs by {apart:.1e}, and {why}"
        return replace(self.check(Outcome.SKIPPED, detail=detail), unjudged=frozenset(outputs))

    @property
    def tells(self) -> bool:
        """Whether agreement shows something: where all inputs are equal, many wrong files agree too."""
        return not self.variation.level and not self.variation.not_finite


@dataclass(frozen=True)
class Subject:
    """What is looked at.

    Attributes:
        first: the call that was exported with.
        device: where the file runs and eager can run too, if that is not the CPU.
        patience: how long eager may take for other values, as the calls that are given show.
        dtypes: those of its outputs, as they are seen.
    """

    artifact: Artifact
    module: nn.Module
    tolerances: Tolerances | None
    first: tuple[Sample, ...] = ()
    device: Device | None = None
    patience: Patience = field(default_factory=Patience)
    dtypes: set[torch.dtype] = field(default_factory=set)


def looked_at(probe: Probe, subject: Subject, dependence: Dependence | None = None) -> Check:
    """Run eager, then the artifact, and return the check."""
    check, outputs = _looked_at(probe, subject, dependence)
    judged = outputs - check.unjudged if probe.tells and (check.outcome is Outcome.OK or check.unjudged) else frozenset()
    return replace(check, judged=judged)


def _looked_at(probe: Probe, subject: Subject, dependence: Dependence | None) -> tuple[Check, frozenset[int]]:
    """The check, and the outputs that eager has."""
    try:
        with at_most(subject.patience.seconds) if probe.variation.name or not probe.asked else subject.patience.measured():
            expected = last_returned(fresh(subject.module), probe.calls)
        leaves = _with_numbers(expected)
    except Exception as error:  # noqa: BLE001 - what eager refuses is told, and nothing is asked of the artifact
        return probe.check(Outcome.SKIPPED, detail=f"{REFUSED}: {first_line(error)}"), frozenset()
    outputs = frozenset(range(len(leaves)))
    subject.dtypes.update(leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor))
    try:
        actual = last_returned(subject.artifact.fresh(), probe.calls)
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is what this check reports
        return probe.refused(first_line(error)), outputs
    if dependence is not None and not probe.variation.not_finite:
        dependence.note(probe.calls, expected, actual)
    return _judged(probe, subject, expected, actual), outputs


def _with_numbers(returned: Any) -> list[Any]:
    """The leaves of what eager returned.

    Raises:
        ValueError: one holds no numbers that could be compared.
    """
    leaves = pytree.tree_leaves(returned)
    for leaf in (leaf for leaf in leaves if isinstance(leaf, torch.Tensor)):
        if leaf.is_meta:
            raise ValueError("it returns a tensor on the device meta, which holds no numbers")
        if leaf.layout != torch.strided:
            raise ValueError(f"it returns a {leaf.layout} tensor, which no file does")
    return leaves


def _judged(probe: Probe, subject: Subject, expected: Any, actual: Any) -> Check:
    held = _where_finite(expected, actual) if probe.variation.not_finite else actual
    if probe.variation.not_finite and _nothing_finite(expected):
        return probe.check(Outcome.SKIPPED, detail="eager answers nothing finite")
    found = difference_of(expected, held, subject.tolerances)
    if not found.problem:
        return probe.check(Outcome.OK, found.worst)
    if found.unlike:
        return _of_order(probe, subject, held) or probe.check(probe.failure, found.worst, found.problem)
    if probe.variation.not_finite and (why := _why_not_decided(probe, subject)):
        return probe.check(Outcome.SKIPPED, detail=f"the file spreads what is not finite otherwise; {why}")
    return _excused(probe, subject, (expected, held), found)


def _why_not_decided(probe: Probe, subject: Subject) -> str:
    """Why what is not finite is not held against a file: the model decides nothing by it, as far as eager can be watched; else nothing."""
    try:
        same = decided(subject.module, probe.calls) == decided(subject.module, subject.first)
    except Exception as error:  # noqa: BLE001 - eager answered these calls: what fails is the watching, and it is told
        return f"eager cannot be watched: {first_line(error)}"
    return "the model decides nothing by it" if same else ""


def _excused(probe: Probe, subject: Subject, answers: tuple[Any, Any], found: Difference) -> Check:
    """The check of what differs: right where it is rounding, or where eager itself moves as much or answers otherwise by other kernels."""
    if subject.device is not None and (excused := _excused_by_device(probe, subject, subject.device, answers)):
        return excused
    half = half_in(subject.module, probe.calls, answers[0])
    ruling = ruled(subject.module, probe.calls, *answers, subject.tolerances) if half or found.worst < math.inf else None
    if ruling and ruling.is_rounding and _answers_again(probe, subject, answers[0]):
        return _by_ruling(probe, subject, answers[1], found, ruling)
    if probe.variation.extreme and (found.times < SMALL or found.worst <= _roundings(probe.calls[-1])):
        words = f"less exact for extreme values, {found.times:.1f} times the tolerance: {found.problem}"
        return probe.check(Outcome.OK, found.worst, words)
    if found.times < SMALL and found.worst <= _a_rounding(probe.calls[-1]):
        words = f"less exact for a small result, {found.times:.1f} times the tolerance, within a rounding of what is given: {found.problem}"
        return probe.check(Outcome.OK, found.worst, words)
    if probe.variation.name and is_of_the_fast_path(subject.module, probe.calls, answers[1], subject.tolerances):
        return probe.check(Outcome.SKIPPED, found.worst, OF_THE_FAST_PATH)
    if of_order := _of_order(probe, subject, answers[1]):
        return of_order
    if moves_as_much(subject.module, probe.calls, *answers, patience=subject.patience.seconds):
        return _by_movement(probe, answers, found, half)
    close = half or found.times < SMALL
    return probe.check(probe.failure, found.worst, f"{found.problem}; {ruling.words}" if ruling and close else found.problem)


def _of_order(probe: Probe, subject: Subject, actual: Any) -> Check | None:
    """The check of a difference that comes from an order that torch or ONNX does not define; None if it does not."""
    apart = apart_in_order(subject.module, probe.calls, actual, subject.tolerances)
    if apart is not None:
        return probe.check(Outcome.OK, apart, OF_TIES)
    if probe.variation.not_finite and sorts(subject.module, probe.calls):
        return probe.check(Outcome.SKIPPED, detail=OF_NAN)
    return None


def _by_ruling(probe: Probe, subject: Subject, actual: Any, found: Difference, ruling: Ruling) -> Check:
    """The check of an answer as near to the exact one as eager; not judged where eager itself is far off."""
    if not ruling.unstable:
        return probe.check(Outcome.OK, found.worst, ruling.words)
    why = f"eager is {UNSTABLE}: {ruling.words.removeprefix(ROUNDING)}"
    return _of_order(probe, subject, actual) or probe.unjudged(found.worst, ruling.unstable, why)


def _by_movement(probe: Probe, answers: tuple[Any, Any], found: Difference, half: torch.dtype | None) -> Check:
    """The check of an answer that is off by no more than eager moves; not judged where eager moves far."""
    pairs = enumerate(zip(*map(pytree.tree_leaves, answers), strict=True))
    beyond = {place for place, (a, b) in pairs if isinstance(a, torch.Tensor) and a.numel() and is_beyond(a, distances(a, b), half)}
    if beyond:
        return probe.unjudged(found.worst, beyond, "eager moves as much for inputs a rounding away")
    return probe.check(Outcome.SKIPPED if probe.variation.name else Outcome.OK, found.worst, OF_MOVEMENT)


def _excused_by_device(probe: Probe, subject: Subject, device: Device, answers: tuple[Any, Any]) -> Check | None:
    """The check of a difference from eager on the CPU that eager on the device of the file has too; None if it has not."""
    try:
        there = returned_on(device, subject.module, probe.calls)
    except Exception:  # noqa: BLE001 - a module need not run there: then eager on the CPU alone decides
        return None
    apart = difference_of(answers[0], answers[1], subject.tolerances).worst
    if not difference_of(there, answers[1], subject.tolerances).problem:
        return probe.check(Outcome.OK, apart, f"eager on {device.name} answers as the file does, and otherwise on the CPU")
    ruling = ruled(subject.module, probe.calls, there, answers[1])
    measured = ruling.is_rounding and not ruling.unstable
    return probe.check(Outcome.OK, apart, f"{ruling.words}; eager on {device.name}") if measured else None


def _answers_again(probe: Probe, subject: Subject, expected: Any) -> bool:
    """Whether eager gives the same answer once more: what it draws at random is no rounding."""
    try:
        again = last_returned(fresh(subject.module), probe.calls)
    except Exception:  # noqa: BLE001 - it answered before: what it does is not the same either way
        return False
    return not difference_of(expected, again, {}).problem


def _roundings(sample: Sample) -> float:
    """A few roundings of the largest finite number among the inputs: what is left where a model subtracts them from each other."""
    return FEW * max((eps * largest for largest, eps in _largest(sample)), default=0.0)


def _a_rounding(sample: Sample) -> float:
    """One rounding of the largest finite number among the inputs, or of 1: as exact are kernels of `sigmoid`, however small its result."""
    return max((eps * max(largest, 1.0) for largest, eps in _largest(sample)), default=torch.finfo(torch.float32).eps)


def _largest(sample: Sample) -> list[tuple[float, float]]:
    """The largest finite number of each of its tensors of floats, and a rounding of 1 in its type."""
    floats = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.numel()]
    return [(float(leaf.double().nan_to_num(posinf=0, neginf=0).abs().max()), torch.finfo(leaf.dtype).eps) for leaf in floats]


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


def describe(sample: Sample) -> str:
    """Return the arguments in a few characters: dtype and shape of each tensor, other values as they are."""
    return ", ".join(_described(leaf) for leaf in sample.leaves())


def _described(leaf: Any) -> str:
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    return show.annotation(str(leaf.dtype).removeprefix("torch."), leaf.shape)
