"""The order of the steps, each in a child of its own, and the time that each may take. Not here: the steps, nor what they mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from ..cases import Sample
from ..exporters import get
from ..exporters.to_onnx import EXTERNAL_DATA_ABOVE
from ..isolation import Ended, Failure, apart
from ..sweep.isolated import GiB
from ..sweep.warm_up import warmed_up
from . import steps
from .facts import FLOOR, Facts, best, summary_of
from .patient import Patient, without
from .steps import Tried
from .workarounds import WORKAROUNDS, Workaround

EXPORTERS = ("torch.export", "to_onnx", "dynamo")
CAPTURES = ("non-strict", "strict", "draft")
SHARE, LEAST = 5, 20.0  # a step may take this part of the whole time, and this many seconds where they are left
COPIES = ("torchscript",)  # exporters that copy the weights several times


@dataclass(frozen=True)
class Options:
    """What the doctor may take and try.

    Attributes:
        seconds: of the whole run. memory: GiB that a step may take, the model included.
        exporters: those to try. save: where to write the best export.
    """

    seconds: float = 300.0
    memory: float = 8.0
    exporters: tuple[str, ...] = EXPORTERS
    save: Path | None = None


@dataclass(frozen=True)
class Started:
    """A step begins."""

    step: str


@dataclass(frozen=True)
class Learned:
    """Something to be kept: what is to be done to the facts."""

    field: str
    key: str
    value: Any


Event = Started | Learned


def keep(facts: Facts, learned: Learned) -> None:
    """Adds what was learned to the facts."""
    held = getattr(facts, learned.field)
    if isinstance(held, dict):
        held[learned.key] = learned.value
    elif isinstance(held, list):
        held.append(learned.value)
    else:
        setattr(facts, learned.field, learned.value)


class Examination:
    """One patient, one budget: yields events, the first of which is a summary."""

    def __init__(self, patient: Patient, options: Options) -> None:
        self.patient = patient
        self.options = options
        self.deadline = time.monotonic() + options.seconds
        self.facts = Facts("")

    def events(self) -> Iterator[Event]:
        """All steps in their order; one that fails, hangs or dies costs its own result."""
        for event in self._events():
            if isinstance(event, Learned):
                keep(self.facts, event)
            yield event

    def _events(self) -> Iterator[Event]:
        yield Learned("summary", "", summary_of(self.patient))
        yield from self._eager()
        if self.facts.unusable is None:
            yield from self._exports()
            yield from self._captures()
            yield from self._partings()
            yield from self._workarounds()
            yield from self._save()

    def _step(self, name: str, call: Callable[[], Any]) -> Ended | None:
        """The call in a child; None when there is no time for it."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            return None
        seconds = min(left, max(self.options.seconds / SHARE, LEAST))
        return apart(partial(_alone, call), seconds=seconds, memory=int(self.options.memory * GiB))

    def _eager(self) -> Iterator[Event]:
        yield Started("eager")
        ended = self._step("eager", partial(steps.ran, self.patient))
        if ended is None or ended.failure is not None:
            failure = ended.failure if ended and ended.failure else Failure("timeout", "TimeLimit: no time was left")
            yield Learned("unusable", "", replace(failure, error=f"the model itself, before any export: {failure.error}"))
            return
        self.patient = without(self.patient, ended.value.valid)
        yield Learned("eager", "", ended.value)
        yield Learned("summary", "", summary_of(self.patient))

    def _exports(self) -> Iterator[Event]:
        for exporter in self.options.exporters:
            yield Started(exporter)
            yield self._tried(exporter, {}, exporter, self.patient)

    def _tried(self, exporter: str, options: Mapping[str, Any], label: str, patient: Patient) -> Event:
        ended = self._step(label, partial(steps.tried, patient, exporter, options, label))
        if ended is None:
            return Learned("left_out", "", label)
        if ended.failure is None:
            return Learned("tried", "", ended.value)
        outcome = ended.failure.kind if ended.failure.kind != "raised" else "crash"
        return Learned("tried", "", Tried(exporter, label, outcome, ended.failure, options=options))

    def _captures(self) -> Iterator[Event]:
        """Only where an export failed; a draft only where torch.export refuses, since it runs the model on real values."""
        if all(_is_right(tried) for tried in self.facts.tried):
            return
        for how in CAPTURES:
            if how == "draft" and not any(isinstance(found, Failure) for found in self.facts.captures.values()):
                return
            yield Started(f"capture, {how}")
            ended = self._step(how, partial(steps.captured, self.patient, how))
            yield Learned("captures", how, ended.failure or ended.value) if ended else Learned("left_out", "", f"capture, {how}")

    def _partings(self) -> Iterator[Event]:
        for tried in self.facts.tried:
            sample = _parting_sample(tried, self.patient)
            if sample is None or tried.exporter not in steps.EXPORT:
                continue
            yield Started(f"where {tried.label} parts")
            ended = self._step("divergence", partial(steps.parted, self.patient, tried.exporter, tried.options, sample))
            if ended is None:
                yield Learned("left_out", "", f"where {tried.label} parts")
            elif ended.value is not None:
                yield Learned("diverged", tried.label, ended.value)

    def _workarounds(self) -> Iterator[Event]:
        for workaround in WORKAROUNDS:
            if self._is_done() or not self._fits(workaround):
                continue
            yield Started(workaround.label)
            ended = self._step(workaround.label, partial(_treated, workaround, self.patient))
            if ended is None:
                yield Learned("left_out", "", workaround.label)
            elif ended.failure is None:
                yield Learned("tried", "", ended.value)

    def _is_done(self) -> bool:
        onnx = [exporter for exporter in self.options.exporters if exporter != FLOOR]
        return not onnx or any(_is_right(t) for t in self.facts.tried if t.exporter != FLOOR)

    def _fits(self, workaround: Workaround) -> bool:
        """Whether it may help: of the exporters that were asked for, or of the oldest one, and not where that is too large."""
        large = self.facts.eager is not None and self.facts.eager.weights > EXTERNAL_DATA_ABOVE
        if workaround.exporter in COPIES:
            return not large and self.options.exporters == EXPORTERS
        return workaround.exporter in self.options.exporters and workaround.fits(self.patient, self.facts.tried)

    def _save(self) -> Iterator[Event]:
        chosen = best(self.facts)
        if self.options.save is None or chosen is None:
            return
        yield Started("save")
        ended = self._step("save", partial(_saved, chosen, self.patient, self.options.save))
        if ended is None or ended.failure is not None:
            yield Learned("left_out", "", f"save ({ended.failure.error})" if ended and ended.failure else "save")
        else:
            yield Learned("saved", "", str(self.options.save))


def _alone(call: Callable[[], Any]) -> Any:
    """In the child: one thread, since those of OpenMP did not come along."""
    torch.set_num_threads(1)
    return call()


def _treated(workaround: Workaround, patient: Patient) -> Tried:
    seen = steps.tried(workaround.change(patient), workaround.exporter, workaround.options, workaround.label, workaround.wrapped)
    return replace(seen, only=workaround.only, before=workaround.before, plain=False)


def _saved(chosen: Tried, patient: Patient, path: Path) -> None:
    as_it_is = Workaround(chosen.label, chosen.exporter, lambda patient, tried: True)
    workaround = next((workaround for workaround in WORKAROUNDS if workaround.label == chosen.label and not chosen.plain), as_it_is)
    steps.saved(workaround.change(patient), chosen.exporter, chosen.options, path, workaround.wrapped)


def _is_right(tried: Tried) -> bool:
    return tried.outcome == "ok" and tried.save is None


def _parting_sample(tried: Tried, patient: Patient) -> Sample | None:
    """The sample at which the numbers of an artifact differ from eager's."""
    unseen = iter(patient.all[1:])
    for check in tried.checks:
        sample = next(unseen) if check.name == "unseen size" else patient.samples[0] if check.name == "export inputs" else None
        if sample is not None and check.outcome not in ("ok", "skipped") and check.detail.startswith("output"):
            return sample
    return None


@cache
def warm_up(exporters: tuple[str, ...]) -> None:
    """What every first export of a process pays for, paid once, before anything is forked."""
    warmed_up(exporters)


def check_exporters(names: Sequence[str]) -> None:
    """Raises a ValueError when an exporter is unknown, or cannot run here."""
    for name in names:
        get(name)
