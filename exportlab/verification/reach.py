"""Whether the samples reach both sides of what a module decides by values; what they do not reach is looked for, and else told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..cases import Sample
from ..eager import fresh, last_returned
from ..messages import first_line
from ..outcomes import Outcome
from .conditions import Conditions, told
from .patience import TooSlow, at_most
from .probe import Probe
from .report import Check
from .values import FURTHER, Variation, integers_at, integers_at_most, integers_of, integers_spread, sizes_of, varied

TOLD = 3  # of what is not reached, named one by one
FURTHEST = 16  # times the greatest integer, and
AND_MORE = 1024

Varied = tuple[Variation, Sample]


@dataclass(frozen=True)
class Reach:
    """What was decided in all runs, and the further values that decide otherwise than the usual ones."""

    conditions: Conditions
    further: tuple[Varied, ...] = ()
    problem: str = ""

    def checks(self) -> list[Check]:
        """Return the row of the report; none where nothing is decided by values."""
        if self.problem:
            return [Check("conditions", "", Outcome.SKIPPED, detail=f"eager cannot be watched: {self.problem}")]
        sites, left = len(self.conditions.seen), [told(*same) for same in self.conditions.never_changed().items()]
        if not sites:
            return []
        detail = "; ".join(left[:TOLD]) + (f"; and {len(left) - TOLD} more" if len(left) > TOLD else "")
        inputs = f"{sites - len(left)} of {sites} seen both ways"
        return [Check("conditions", inputs, Outcome.SKIPPED if left else Outcome.OK, detail=detail)]


def reached(module: nn.Module, first: Sample, accepted: Sequence[Probe], patience: float) -> Reach:
    """Watch eager at all calls that it accepts, and look for values that change a condition which none of them changes.

    Where all numbers are equal both sides of a condition may well answer alike: the search goes on as if these had not been seen.
    """
    conditions = Conditions()
    try:
        for probe in accepted if accepted and _decides(conditions, module, accepted[0].calls) else ():
            if not probe.variation.level:
                conditions.watch(module, probe.calls)
        further = [*_found(Search(conditions, module, patience), first)]
        for probe in accepted if conditions.seen else ():
            if probe.variation.level:
                conditions.watch(module, probe.calls)
    except Exception as error:  # noqa: BLE001 - eager was seen to accept them: what fails is the watching, and it is told
        return Reach(conditions, problem=first_line(error))
    return Reach(conditions, (*further, *_large(Search(conditions, module, patience), first)))


def _decides(conditions: Conditions, module: nn.Module, calls: tuple[Sample, ...]) -> bool:
    conditions.watch(module, calls)
    return bool(conditions.seen)


@dataclass(frozen=True)
class Search:
    """Looking for values that eager takes, each within so many seconds, and for what they change; one that takes longer ends it."""

    conditions: Conditions
    module: nn.Module
    patience: float
    too_slow: list[TooSlow] = field(default_factory=list)

    def takes(self, sample: Sample) -> bool:
        """Whether eager accepts the sample."""
        return self._runs(lambda: last_returned(fresh(self.module), (sample,)))

    def changes(self, sample: Sample) -> bool:
        """Whether eager accepts the sample, and decides what it never did before."""
        before = self.conditions.open()
        return self._runs(lambda: self.conditions.watch(self.module, (sample,))) and self.conditions.open() < before

    def _runs(self, call: Callable[[], Any]) -> bool:
        if self.too_slow:
            return False
        try:
            with at_most(self.patience):
                call()
        except TooSlow as error:
            self.too_slow.append(error)
            return False
        except Exception:  # noqa: BLE001 - values that eager refuses are none to verify with
            return False
        return True


def _found(search: Search, first: Sample) -> Iterator[Varied]:
    for variation, sample in varied(first, FURTHER):
        if search.conditions.open() and search.changes(sample):
            yield variation, sample
    for size in sizes_of(first):
        for variation, sample in varied(first, (integers_at(size),)):
            if (search.conditions.open() and search.changes(sample)) or (search.conditions.numbers and search.takes(sample)):
                yield variation, sample


def _large(search: Search, first: Sample) -> Iterator[Varied]:
    """Integers as large as eager takes them, in each tensor of them, and spread from 0 to there."""
    found = {id(tensor): greatest_taken(search, first, tensor) for tensor in integers_of(first)}
    greatest = {place: value for place, value in found.items() if value > 0}
    if greatest:
        yield from varied(first, (integers_at_most(greatest), *integers_spread(greatest)))


def greatest_taken(search: Search, first: Sample, tensor: torch.Tensor) -> int:
    """Return the greatest number that eager takes throughout this tensor: in steps that double until it refuses, and then halve."""
    greatest = int(tensor.max())
    value, step, refused = greatest, 1, False
    furthest = min(FURTHEST * abs(greatest) + AND_MORE, torch.iinfo(tensor.dtype).max)
    while step and value + step <= furthest and not search.too_slow:
        accepted = search.takes(next(varied(first, (integers_at(value + step, tensor),)))[1])
        value, refused = value + step * accepted, refused or not accepted
        step = step // 2 if refused else step * 2
    return value
