"""Whether the samples reach both sides of what a module decides by values; what they do not reach is looked for, and else told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from ..cases import Sample
from ..messages import first_line
from ..outcomes import Outcome
from .boundary_values import Varied, edges
from .check_spec import CheckSpec
from .conditions import Conditions, describe_site
from .report import Check
from .search import Search, greatest_taken
from .values import FURTHER, integers_at, integers_at_most, integers_of, integers_spread, mutate_sample, sizes_of

TOLD = 3  # of what is not reached, named one by one


@dataclass(frozen=True)
class Coverage:
    """What was decided in all runs, and the further values that decide otherwise than the usual ones."""

    conditions: Conditions
    further: tuple[Varied, ...] = ()
    problem: str = ""

    def checks(self) -> list[Check]:
        """Return the row of the report; none where nothing is decided by values."""
        if self.problem:
            return [Check("conditions", "", Outcome.SKIPPED, detail=f"eager cannot be watched: {self.problem}")]
        sites, left = len(self.conditions.seen), [describe_site(*same) for same in self.conditions.never_changed().items()]
        if not sites:
            return []
        detail = "; ".join(left[:TOLD]) + (f"; and {len(left) - TOLD} more" if len(left) > TOLD else "")
        inputs = f"{sites - len(left)} of {sites} seen both ways"
        return [Check("conditions", inputs, Outcome.SKIPPED if left else Outcome.OK, detail=detail)]


def cover_decisions(module: nn.Module, first: Sample, accepted: Sequence[CheckSpec], patience: float) -> Coverage:
    """Watch eager at all calls that it accepts; look for values that change a condition which none of them changes, and for its edges.

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
        return Coverage(conditions, problem=first_line(error))
    greatest = _greatest(Search(conditions, module, patience), first)
    large, beside = [*_large(first, greatest)], Search(conditions, module, patience)
    for _, sample in large if conditions.seen else ():
        beside.watches(sample)
    return Coverage(conditions, (*further, *large, *edges(beside, first, greatest)))


def _decides(conditions: Conditions, module: nn.Module, calls: tuple[Sample, ...]) -> bool:
    conditions.watch(module, calls)
    return bool(conditions.seen)


def _found(search: Search, first: Sample) -> Iterator[Varied]:
    for variation, sample in mutate_sample(first, FURTHER):
        if search.conditions.open() and search.changes(sample):
            yield variation, sample
    for size in sizes_of(first):
        for variation, sample in mutate_sample(first, (integers_at(size),)):
            if (search.conditions.open() and search.changes(sample)) or (search.conditions.numbers and search.takes(sample)):
                yield variation, sample


def _greatest(search: Search, first: Sample) -> dict[int, int]:
    """The greatest number that eager takes in each tensor of integers, by `id`."""
    found = {id(tensor): greatest_taken(search, first, tensor) for tensor in integers_of(first)}
    return {place: value for place, value in found.items() if value > 0}


def _large(first: Sample, greatest: Mapping[int, int]) -> Iterator[Varied]:
    """Integers as large as eager takes them, in each tensor of them, and spread from 0 to there."""
    if greatest:
        yield from mutate_sample(first, (integers_at_most(greatest), *integers_spread(greatest)))
