"""What is looked at: calls in a row, the artifact and the module that are to answer the last one alike."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from .. import show
from ..cases import Sample
from ..exporters import Artifact
from ..outcomes import Outcome
from .devices import Device
from .difference import Tolerances
from .eager_timeout import Patience
from .report import NOT_JUDGED, Check
from .values import Mutation

AS_GIVEN = Mutation("", lambda tensor: False, lambda tensor: tensor)
REFUSED_UNASKED = "it rejects this size, which no sample has"


@dataclass(frozen=True)
class CheckSpec:
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
    variation: Mutation = AS_GIVEN
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
class UnderTest:
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


def describe(sample: Sample) -> str:
    """Return the arguments in a few characters: dtype and shape of each tensor, other values as they are."""
    return ", ".join(_describe_leaf(leaf) for leaf in sample.leaves())


def _describe_leaf(leaf: Any) -> str:
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    return show.annotation(str(leaf.dtype).removeprefix("torch."), leaf.shape)
