"""Check whether the samples cover both sides of a module's value-dependent decisions, and search for values that do."""

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

TOLD = 3  # number of uncovered sites to name


@dataclass(frozen=True)
class Coverage:
    """The decisions of all runs, and additional values that change decisions."""

    conditions: Conditions
    further: tuple[Varied, ...] = ()
    problem: str = ""

    def checks(self) -> list[Check]:
        """Return the row of the report; none if the module makes no value-dependent decisions."""
        if self.problem:
            return [Check("conditions", "", Outcome.SKIPPED, detail=f"eager cannot be observed: {self.problem}")]
        sites, left = len(self.conditions.seen), [describe_site(*same) for same in self.conditions.never_changed().items()]
        if not sites:
            return []
        detail = "; ".join(left[:TOLD]) + (f"; and {len(left) - TOLD} more" if len(left) > TOLD else "")
        inputs = f"{sites - len(left)} of {sites} seen both ways"
        return [Check("conditions", inputs, Outcome.SKIPPED if left else Outcome.OK, detail=detail)]


def cover_decisions(module: nn.Module, first: Sample, accepted: Sequence[CheckSpec], patience: float) -> Coverage:
    """Record eager's decisions in all accepted calls. Search for values that change the remaining conditions, and for their edges.

    Calls with all inputs equal are recorded last, because both sides of a condition may give the same answer there.
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
    except Exception as error:  # noqa: BLE001 - eager accepted these calls before, so the recording failed; report that
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
    """Return the largest integer that eager accepts in each integer tensor, by `id`."""
    found = {id(tensor): greatest_taken(search, first, tensor) for tensor in integers_of(first)}
    return {place: value for place, value in found.items() if value > 0}


def _large(first: Sample, greatest: Mapping[int, int]) -> Iterator[Varied]:
    """Yield samples with the largest accepted integers in each integer tensor, and spread from 0 to there."""
    if greatest:
        yield from mutate_sample(first, (integers_at_most(greatest), *integers_spread(greatest)))
