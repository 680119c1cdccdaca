"""Classify differences that are not errors of the exported model, with a list of classifiers that are tried in order.

The tests in tests/exportlab/verification/test_excuses.py contain, for each one, differences that it excuses and wrong models that it
doesn't.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from fx2onnx.compat import trees as pytree

from ..cases import Sample
from ..eager import fresh, run_calls
from ..messages import first_line
from ..outcomes import Outcome
from .check_spec import CheckSpec, UnderTest
from .conditioning import collect_decisions, is_ill_conditioned
from .devices import returned_on
from .difference import Difference, difference_of, distances
from .fast_path import WORDS as OF_THE_FAST_PATH
from .fast_path import is_of_the_fast_path
from .float64_reference import BEYOND, Ruling, adjudicate, half_in, is_beyond
from .report import ROUNDING, Check
from .ties import WORDS as OF_TIES
from .ties import apart_in_order, sorts

UNSTABLE = f"itself more than {BEYOND:.0f} tolerances from its float64 answer"
PROPAGATES_DIFFERENTLY = "the model propagates NaN and infinity differently"
OF_NAN = "ONNX does not define where NaN is sorted"
OF_MOVEMENT = "eager itself changes as much if the inputs change by a rounding"
FEW = 16.0
SMALL = 10.0  # in tolerances; smaller differences may be rounding, or less exact kernels for extreme values


@dataclass(frozen=True)
class Pair:
    """The different results of eager and of an exported model for one check.

    Attributes:
        actual: the model's results, with eager's in place of non-finite elements if the inputs contain NaN or infinity.
    """

    probe: CheckSpec
    subject: UnderTest
    expected: Any
    actual: Any
    found: Difference

    @cached_property
    def half(self) -> torch.dtype | None:
        """The coarsest half-precision dtype that the module uses."""
        return half_in(self.subject.module, self.probe.calls, self.expected)

    @cached_property
    def ruling(self) -> Ruling | None:
        """The comparison with float64; None if the results are infinitely far apart and the module doesn't use half precision."""
        if self.found.unlike or not (self.half or self.found.worst < math.inf):
            return None
        return adjudicate(self.subject.module, self.probe.calls, self.expected, self.actual, self.subject.tolerances)

    @cached_property
    def apart_in_order(self) -> float | None:
        """The distance from eager with stable sorting; None if the results still differ."""
        return apart_in_order(self.subject.module, self.probe.calls, self.actual, self.subject.tolerances)

    def right(self, words: str, apart: float | None = None) -> Check:
        """Return a passing check for a difference that is not an error."""
        return self.probe.check(Outcome.OK, self.found.worst if apart is None else apart, words)


@dataclass(frozen=True)
class Excuse:
    """A reason why a difference is not an error.

    Attributes:
        classify: returns a check if the reason applies, else None.
        unlike: whether the reason can apply to different shapes, dtypes or integers.
        exact: whether eager itself was shown to give the model's result, so that eager's own precision is irrelevant.
    """

    name: str
    classify: Callable[[Pair], Check | None]
    unlike: bool = False
    exact: bool = False


def excuse(pair: Pair) -> Check | None:
    """Return the check of the first reason in `EXCUSES` that explains the difference; None if the model is wrong.

    If eager is far from its own float64 result, an excused output is not judged, unless eager itself gave the model's result.
    """
    for reason in EXCUSES:
        if pair.found.unlike and not reason.unlike:
            continue
        check = reason.classify(pair)
        if check is not None:
            return replace(check if reason.exact else _mark_unjudged(pair, check), excuse=reason.name)
    return None


def _mark_unjudged(pair: Pair, check: Check) -> Check:
    """Return the check, or mark it as not judged if eager is too inexact."""
    if check.outcome is not Outcome.OK or pair.ruling is None or not pair.ruling.unstable:
        return check
    why = f"eager is {UNSTABLE}: {pair.ruling.words.removeprefix(ROUNDING)}"
    return pair.probe.unjudged(pair.found.worst, pair.ruling.unstable, why)


# Classifiers -----------------------------------------------------------------------------------------------------------------------------


def _decides_nothing(pair: Pair) -> Check | None:
    """Excuse different spreading of NaN and infinity by kernels, if the model's decisions don't depend on them."""
    if not pair.probe.variation.not_finite:
        return None
    try:
        same = collect_decisions(pair.subject.module, pair.probe.calls) == collect_decisions(pair.subject.module, pair.subject.first)
    except Exception as error:  # noqa: BLE001 - eager accepted these calls before, so the recording failed; report that
        detail = f"{PROPAGATES_DIFFERENTLY}; eager cannot be observed: {first_line(error)}"
        return pair.probe.check(Outcome.SKIPPED, detail=detail)
    return (
        pair.probe.check(Outcome.SKIPPED, detail=f"{PROPAGATES_DIFFERENTLY}; the model's decisions don't depend on them") if same else None
    )


def _is_of_the_device(pair: Pair) -> Check | None:
    """Excuse results that match eager on the model's device, up to rounding."""
    device = pair.subject.device
    if device is None:
        return None
    try:
        there = returned_on(device, pair.subject.module, pair.probe.calls)
    except Exception:  # noqa: BLE001 - the module may not run on the device; then only eager on the CPU counts
        return None
    if not difference_of(there, pair.actual, pair.subject.tolerances).problem:
        return pair.right(f"eager on {device.name} gives the same answer, but eager on the CPU does not")
    ruling = adjudicate(pair.subject.module, pair.probe.calls, there, pair.actual)
    measured = ruling.is_rounding and not ruling.unstable
    return pair.right(f"{ruling.words}; eager on {device.name}") if measured else None


def _is_rounding(pair: Pair) -> Check | None:
    """Excuse results that are as near to the float64 result as eager's, if eager's are reproducible."""
    if pair.ruling is None or not pair.ruling.is_rounding or not _answers_again(pair):
        return None
    if pair.ruling.unstable and (_is_of_ties(pair) or _is_of_sorted_nan(pair)):
        return None  # differences explained by sort order are left to that classifier
    return pair.right(pair.ruling.words)


def _answers_again(pair: Pair) -> bool:
    """Whether eager repeats its result, so that the difference isn't random."""
    try:
        again = run_calls(fresh(pair.subject.module), pair.probe.calls)
    except Exception:  # noqa: BLE001 - it succeeded before, so it is not reproducible
        return False
    return not difference_of(pair.expected, again, {}).problem


def _is_of_extreme_values(pair: Pair) -> Check | None:
    """Excuse small errors for extreme values, where kernels are less exact: a few tolerances, or a few roundings of the inputs."""
    found = pair.found
    if not pair.probe.variation.extreme or not (found.times < SMALL or found.worst <= _roundings(pair.probe.calls[-1])):
        return None
    return pair.right(f"less exact for extreme values, {found.times:.1f} times the tolerance: {found.problem}")


def _is_of_a_small_result(pair: Pair) -> Check | None:
    """Excuse errors within one rounding of the inputs, if the result is small compared with the inputs."""
    found = pair.found
    if found.times >= SMALL or found.worst > _a_rounding(pair.probe.calls[-1]):
        return None
    words = f"less exact for a small result, {found.times:.1f} times the tolerance, within one rounding of the inputs"
    return pair.right(f"{words}: {found.problem}")


def _is_of_the_fast_path(pair: Pair) -> Check | None:
    """Excuse results that match eager without PyTorch's fast path for encoders."""
    if not pair.probe.variation.name:
        return None
    if not is_of_the_fast_path(pair.subject.module, pair.probe.calls, pair.actual, pair.subject.tolerances):
        return None
    return pair.probe.check(Outcome.SKIPPED, pair.found.worst, OF_THE_FAST_PATH)


def _is_of_ties(pair: Pair) -> Check | None:
    """Excuse results that match eager with stable sorting, because torch doesn't define the order of equal elements."""
    return None if pair.apart_in_order is None else pair.right(OF_TIES, pair.apart_in_order)


def _is_of_sorted_nan(pair: Pair) -> Check | None:
    """Skip models that sort non-finite values."""
    sorts_nan = pair.probe.variation.not_finite and sorts(pair.subject.module, pair.probe.calls)
    return pair.probe.check(Outcome.SKIPPED, detail=OF_NAN) if sorts_nan else None


def _is_ill_conditioned(pair: Pair) -> Check | None:
    """Excuse differences as large as eager's own for inputs one rounding away; large ones are not judged."""
    probe, subject = pair.probe, pair.subject
    if not is_ill_conditioned(subject.module, probe.calls, pair.expected, pair.actual, patience=subject.patience.seconds):
        return None
    leaves = enumerate(zip(*map(pytree.tree_leaves, (pair.expected, pair.actual)), strict=True))
    tensors = ((place, a, b) for place, (a, b) in leaves if isinstance(a, torch.Tensor) and a.numel())
    beyond = {place for place, a, b in tensors if is_beyond(a, distances(a, b), pair.half)}
    if beyond:
        return probe.unjudged(pair.found.worst, beyond, OF_MOVEMENT.replace("eager itself changes", "eager changes"))
    return probe.check(Outcome.SKIPPED if probe.variation.name else Outcome.OK, pair.found.worst, OF_MOVEMENT)


EXCUSES: Sequence[Excuse] = (
    Excuse("not finite", _decides_nothing),
    Excuse("device", _is_of_the_device, exact=True),
    Excuse("rounding", _is_rounding),
    Excuse("ties", _is_of_ties, unlike=True, exact=True),
    Excuse("sorted NaN", _is_of_sorted_nan, unlike=True),
    Excuse("extreme values", _is_of_extreme_values),
    Excuse("small result", _is_of_a_small_result),
    Excuse("fast path", _is_of_the_fast_path, exact=True),
    Excuse("ill-conditioned", _is_ill_conditioned),
)


def _roundings(sample: Sample) -> float:
    """Return a few roundings of the largest finite input: the error that may remain when a model subtracts inputs."""
    return FEW * max((eps * largest for largest, eps in _largest(sample)), default=0.0)


def _a_rounding(sample: Sample) -> float:
    """Return one rounding of the largest finite input or of 1. Kernels of `sigmoid` are that exact even for small results."""
    return max((eps * max(largest, 1.0) for largest, eps in _largest(sample)), default=torch.finfo(torch.float32).eps)


def _largest(sample: Sample) -> list[tuple[float, float]]:
    """Return the largest finite number of each float tensor, and the machine epsilon of its dtype."""
    floats = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.numel()]
    return [(float(leaf.double().nan_to_num(posinf=0, neginf=0).abs().max()), torch.finfo(leaf.dtype).eps) for leaf in floats]
