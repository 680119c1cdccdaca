"""Run one check: call eager, then the artifact, and compare their last results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.fake_tensors import FakeTensor

from ..eager import fresh, run_calls
from ..messages import first_line
from ..outcomes import Outcome
from .check_spec import CheckSpec, UnderTest
from .dependence import Dependence
from .difference import difference_of
from .eager_timeout import TooSlow, time_limit
from .excuses import SMALL, Pair, excuse
from .report import NOT_CHECKED, REFUSED, Check


class _Eager:
    """A copy of a module. Once it `has_started`, an error comes from the module or from what it returns; before, the check failed."""

    def __init__(self, module: nn.Module) -> None:
        self.copied, self.has_started = fresh(module), False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.has_started = True
        return self.copied(*args, **kwargs)


def run_check(probe: CheckSpec, subject: UnderTest, dependence: Dependence | None = None) -> Check:
    """Run eager, then the artifact, and return the check."""
    check, outputs = _run_check(probe, subject, dependence)
    judged = outputs - check.unjudged if probe.tells and (check.outcome is Outcome.OK or check.unjudged) else frozenset()
    return replace(check, judged=judged)


def _run_check(probe: CheckSpec, subject: UnderTest, dependence: Dependence | None) -> tuple[Check, frozenset[int]]:
    """Return the check, and the indices of eager's outputs."""
    eager = _Eager(subject.module)
    try:
        with time_limit(subject.patience.seconds) if probe.variation.name or not probe.asked else subject.patience.measured():
            expected = run_calls(eager, probe.calls)
    except Exception as error:  # noqa: BLE001 - if eager rejects a call, report it and don't run the artifact
        why = REFUSED if eager.has_started or isinstance(error, TooSlow) else NOT_CHECKED
        return probe.check(Outcome.SKIPPED, detail=f"{why}: {first_line(error)}"), frozenset()
    try:
        leaves = _flatten_dense_leaves(expected)
    except ValueError as error:
        return probe.check(Outcome.SKIPPED, detail=f"{REFUSED}: {first_line(error)}"), frozenset()
    outputs = frozenset(range(len(leaves)))
    subject.dtypes.update(leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor))
    try:
        actual = run_calls(subject.artifact.fresh(), probe.calls)
    except Exception as error:  # noqa: BLE001 - any error of the runtime is a result of this check
        return probe.refused(first_line(error)), outputs
    if dependence is not None and not probe.variation.not_finite:
        dependence.note(probe.calls, expected, actual)
    return _judge_answers(probe, subject, expected, actual), outputs


def _flatten_dense_leaves(returned: Any) -> list[Any]:
    """Return the leaves of eager's result.

    Raises:
        ValueError: a tensor is not dense or has no data, so it cannot be compared.
    """
    leaves = pytree.tree_leaves(returned)
    for leaf in (leaf for leaf in leaves if isinstance(leaf, torch.Tensor)):
        if leaf.is_meta:
            raise ValueError("it returns a tensor on the meta device, which has no data")
        if leaf.layout != torch.strided:
            raise ValueError(f"it returns a {leaf.layout} tensor: only dense tensors can be compared")
    return leaves


def _judge_answers(probe: CheckSpec, subject: UnderTest, expected: Any, actual: Any) -> Check:
    compared = _where_finite(expected, actual) if probe.variation.not_finite else actual
    if probe.variation.not_finite and _nothing_finite(expected):
        return probe.check(Outcome.SKIPPED, detail="eager returns only NaN and infinity")
    found = difference_of(expected, compared, subject.tolerances)
    if not found.problem:
        return probe.check(Outcome.OK, found.worst)
    pair = Pair(probe, subject, expected, compared, found)
    return excuse(pair) or probe.check(probe.failure, found.worst, _problem(pair))


def _problem(pair: Pair) -> str:
    """Describe the difference. If it may be rounding, add how far both results are from float64."""
    is_close = not pair.found.unlike and (pair.half or pair.found.times < SMALL)
    return f"{pair.found.problem}; {pair.ruling.words}" if is_close and pair.ruling else pair.found.problem


def _where_finite(expected: Any, actual: Any) -> Any:
    """Replace results where eager's are not finite by eager's, because kernels are free in how they treat NaN and infinity."""
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
