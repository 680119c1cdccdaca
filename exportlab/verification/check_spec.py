"""Define what one check runs: a sequence of calls, and the artifact and the module whose last results are compared."""

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
    """A sequence of calls, the last of which is compared; `failure` is the outcome if the results differ.

    Attributes:
        refusable: whether an error of the artifact is `narrow`, for inputs unlike the export's; otherwise it is `run`.
        variation: the change that made these inputs from the first sample.
        why: a prefix for the detail of a failed check.
        asked: True if the samples include this size. If not, an error of the artifact is not a failure.
    """

    name: str
    calls: tuple[Sample, ...]
    failure: Outcome
    refusable: bool = False
    variation: Mutation = AS_GIVEN
    why: str = ""
    asked: bool = True

    def check(self, outcome: Outcome, worst: float | None = None, detail: str = "") -> Check:
        """Return a check with this outcome."""
        said = self.why + detail if outcome not in (Outcome.OK, Outcome.SKIPPED) else detail
        return Check(self.name, describe(self.calls[-1]), outcome, worst, said, self.variation.name)

    def refused(self, why: str) -> Check:
        """Return the check for an error of the artifact."""
        if not self.asked:
            return self.check(Outcome.SKIPPED, detail=f"{REFUSED_UNASKED}: {why}")
        return self.check(Outcome.NARROW if self.refusable else Outcome.RUN, detail=why)

    def unjudged(self, apart: float, outputs: Collection[int], why: str) -> Check:
        """Return the check for results that differ where eager is too inexact to judge these outputs."""
        listed = ", ".join(map(str, sorted(outputs)))
        detail = f"{NOT_JUDGED}: output {listed} differs by {apart:.1e}, and {why}"
        return replace(self.check(Outcome.SKIPPED, detail=detail), unjudged=frozenset(outputs))

    @property
    def tells(self) -> bool:
        """Whether agreement is evidence. With equal or non-finite inputs, many wrong models agree too."""
        return not self.variation.level and not self.variation.not_finite


@dataclass(frozen=True)
class UnderTest:
    """The artifact and module under test.

    Attributes:
        first: the call used for the export.
        device: the device that runs the model, if it isn't the CPU and eager can run there too.
        patience: the time limit of eager for generated values, based on the given calls.
        dtypes: the output dtypes, collected during the checks.
    """

    artifact: Artifact
    module: nn.Module
    tolerances: Tolerances | None
    first: tuple[Sample, ...] = ()
    device: Device | None = None
    patience: Patience = field(default_factory=Patience)
    dtypes: set[torch.dtype] = field(default_factory=set)


def describe(sample: Sample) -> str:
    """Describe the arguments briefly: dtype and shape of tensors, and the repr of other values."""
    return ", ".join(_describe_leaf(leaf) for leaf in sample.leaves())


def _describe_leaf(leaf: Any) -> str:
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    return show.annotation(str(leaf.dtype).removeprefix("torch."), leaf.shape)
