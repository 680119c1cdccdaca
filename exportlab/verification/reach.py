"""Whether the samples reach both sides of what a module decides by values; what they do not reach is looked for, and else told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from ..cases import Sample
from ..messages import first_line
from ..outcomes import Outcome
from .conditions import Conditions, told
from .report import Check
from .values import FURTHER, Variation, integers_at, sizes_and_greatest, varied

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


def reached(module: nn.Module, first: Sample, accepted: Sequence[tuple[Sample, ...]]) -> Reach:
    """Watch eager at all calls that it accepts, and look for values that change a condition which none of them changes."""
    conditions = Conditions()
    try:
        for calls in accepted if accepted and _decides(conditions, module, accepted[0]) else ():
            conditions.watch(module, calls)
    except Exception as error:  # noqa: BLE001 - eager was seen to accept them: what fails is the watching, and it is told
        return Reach(conditions, problem=first_line(error))
    return Reach(conditions, tuple(_found(conditions, module, first)))


def _decides(conditions: Conditions, module: nn.Module, calls: tuple[Sample, ...]) -> bool:
    conditions.watch(module, calls)
    return bool(conditions.seen)


def _found(conditions: Conditions, module: nn.Module, first: Sample) -> Iterator[Varied]:
    for variation, sample in varied(first, FURTHER):
        if conditions.open() and _tried(conditions, module, sample)[1]:
            yield variation, sample
    yield from _found_integers(conditions, module, first)


def _found_integers(conditions: Conditions, module: nn.Module, first: Sample) -> Iterator[Varied]:
    """At the sizes of the inputs, then up from the greatest integer, in steps that double until eager refuses, and halve from there on."""
    sizes, greatest = sizes_and_greatest(first)
    if greatest is None:
        return
    for size in sizes:
        yield from _at(size, conditions, module, first)[1]
    value, step, refused = greatest, 1, False
    while conditions.open() and step and value + step <= FURTHEST * abs(greatest) + AND_MORE:
        accepted, found = _at(value + step, conditions, module, first)
        yield from found
        value, refused = value + step * accepted, refused or not accepted
        step = step // 2 if refused else step * 2


def _at(value: int, conditions: Conditions, module: nn.Module, first: Sample) -> tuple[bool, list[Varied]]:
    """Whether eager accepts integers of this value, and them if they change a condition."""
    found = list(varied(first, (integers_at(value),)))
    if not found or not conditions.open():
        return True, []
    accepted, changed = _tried(conditions, module, found[0][1])
    return accepted, found if changed else []


def _tried(conditions: Conditions, module: nn.Module, sample: Sample) -> tuple[bool, bool]:
    """Whether eager accepts the sample, and whether it decides anything otherwise."""
    before = conditions.open()
    try:
        conditions.watch(module, (sample,))
    except Exception:  # noqa: BLE001 - values that eager refuses are none to verify with
        return False, False
    return True, conditions.open() < before
