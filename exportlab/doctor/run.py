"""Run the steps in order, each in a separate process with a time limit."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp

import torch

from ..defaults import DOCTOR_GIB, DOCTOR_SECONDS, DOCTORS, GiB
from ..exporters import get
from ..exporters.to_onnx import EXTERNAL_DATA_ABOVE
from ..isolation import Ended, Failure, events
from ..outcomes import Outcome
from ..sweep.warm_up import warmed_up
from .autofix import mend
from .eager_probe import carry, watch
from .events import Capture, Event, LeftOut, Started, Tell, Trial, Unusable
from .facts import FLOOR, Facts, find_best_trial
from .findings import suspects
from .hang import Watch
from .steps import capture, run_eagerly
from .subject import Subject, format_dynamic_shapes, summary_of, without
from .trial import REFUSES, diverges, refusal, save, try_export
from .workarounds import WORKAROUNDS, Workaround

CAPTURES = ("non-strict", "strict", "draft")
SHARE, LEAST = 5, 20.0  # a step gets a fifth of the total time, but at least 20 seconds if they are left; the last step gets the rest
STUCK = (Outcome.CAPTURE, Outcome.FROZEN, Outcome.NARROW)
COPIES = ("torchscript",)  # exporters that make several copies of the weights
OUR_DEFECT = "internal error in exportlab, which is not a defect of your model"
NO_TIME = Failure("timeout", "TimeLimit: no time was left")
Failed = Callable[[Failure], Event | None]


@dataclass(frozen=True)
class Options:
    """The options of an examination.

    Attributes:
        seconds: time limit for the whole run. memory: memory limit per step in GiB, including the model.
        exporters: exporters to try. save: path for the best export. train: whether to keep a model in training mode.
    """

    seconds: float = DOCTOR_SECONDS
    memory: float = DOCTOR_GIB
    exporters: tuple[str, ...] = DOCTORS
    save: Path | None = None
    train: bool = False


class Examination:
    """The examination of one model within a time limit. It yields events, starting with a summary.

    Args:
        folder: an empty folder for exported models. It contains at most the best export and the current one.
    """

    def __init__(self, patient: Subject, options: Options, folder: Path) -> None:
        self.patient = patient
        self.options = options
        self.folder = folder
        self.deadline = time.monotonic() + options.seconds
        self.facts = Facts("")

    def events(self) -> Iterator[Event]:
        """Run all steps in order. A step that fails, hangs or crashes loses only its own result."""
        for event in self._events():
            self.facts.keep(event)
            yield event

    def _events(self) -> Iterator[Event]:
        yield summary_of(self.patient)
        yield from self._eager()
        if self.facts.unusable is None:
            yield from self._exports()
            yield from self._refusal()
            yield from self._captures()
            yield from self._workarounds()
            yield from self._mending()
            yield from self._save()

    def _step(self, name: str, call: Callable[[Tell], None], failed: Failed, last: bool = False) -> Iterator[Event]:
        """Run a step in a child process and yield its events. If it fails or the time is used up, yield the result of `failed`.

        The last search step gets all the remaining time, except the time reserved for saving.
        """
        yield Started(name)
        for said in self._in_child(call, last):
            event = said if not isinstance(said, Ended) else failed(said.failure) if said.failure else None
            if event is not None:
                yield event

    def _in_child(self, call: Callable[[Tell], None], last: bool) -> Iterator[Event | Ended]:
        left = self.deadline - time.monotonic()
        if left <= 0:
            yield Ended(failure=NO_TIME)
            return
        share = self.options.seconds / SHARE
        seconds = left - share * (self.options.save is not None) if last else share
        seconds = min(left, max(seconds, LEAST))
        watch = Watch(seconds)
        for said in events(watch.over(partial(_alone, call)), seconds=seconds, memory=int(self.options.memory * GiB)):
            yield watch.told(said)

    def _eager(self) -> Iterator[Event]:
        yield from self._step("eager", lambda tell: tell(run_eagerly(self.patient)), _unusable)
        if self.facts.eager is not None:
            self.patient = without(self.patient, self.facts.eager.valid)
            yield summary_of(self.patient)

    def _exports(self) -> Iterator[Event]:
        for exporter in self.options.exporters:
            yield from self._trial(Trial(exporter, exporter), partial(try_export, self.patient), self._lost)

    def _refusal(self) -> Iterator[Event]:
        """Get an error message of `to_onnx` for problems that have none, unless `to_onnx` already raised one or was not tried."""
        attempt = next((trial for trial in self.facts.tried if trial.exporter == REFUSES), None)
        if attempt is not None and attempt.failure is None and any(map(self.facts.is_unexplained, self.facts.tried)):
            yield from self._step("refusal", partial(refusal, self.patient), lambda failure: None)

    def _trial(
        self, trial: Trial, call: Callable[[Trial, Path, Tell], None], lost: Callable[[Trial, Failure], Event | None]
    ) -> Iterator[Event]:
        """Run one export in a separate folder, and delete the folders of all exports except the best one."""
        folder = Path(mkdtemp(dir=self.folder))
        yield from self._step(trial.label, partial(call, trial, folder), partial(lost, trial))
        chosen = find_best_trial(self.facts) if self.options.save else None
        for other in self.folder.iterdir():
            if chosen is None or other != Path(chosen.file).parent:
                shutil.rmtree(other)

    def _lost(self, trial: Trial, failure: Failure) -> Event | None:
        """Record an export whose process failed. If its outcome was already reported, only the search for a divergence is lost."""
        if failure is NO_TIME:
            return LeftOut(trial.label)
        if any(tried.label == trial.label for tried in self.facts.tried):
            return LeftOut(diverges(trial), _why(failure)) if failure.kind == "timeout" else None
        return replace(trial, outcome=failure.outcome, failure=failure)

    def _captures(self) -> Iterator[Event]:
        """Capture the model if an export failed. `draft_export` runs the model on real values, so it's used only if torch.export fails."""
        if all(map(self.facts.is_right, self.facts.tried)):
            return
        for how in CAPTURES:
            if how == "draft" and not any(isinstance(found, Failure) for found in self.facts.captures.values()):
                return
            yield from self._step(f"capture, {how}", partial(_capture, self.patient, how), partial(_no_capture, how))

    def _workarounds(self) -> Iterator[Event]:
        for workaround in WORKAROUNDS:
            if not self._is_done(workaround) and self._fits(workaround):
                yield from self._trial(workaround.trial(), partial(_try, workaround, self.patient), _no_help)

    def _mending(self) -> Iterator[Event]:
        """Search for differences between eager and the capture, and try changes of the lines that cause the failure."""
        exporters = self._to_be_mended()
        if not exporters:
            return
        yield from self._step("watch", partial(watch, self.patient), lambda failure: None)
        yield from self._step("state", partial(carry, self.patient, exporters), lambda failure: None)
        carried = self.facts.kept is not None and bool(self.facts.kept.code)
        if self.facts.eager is not None and not carried and not self.facts.eager.random:  # random results cannot be compared
            folder = Path(mkdtemp(dir=self.folder))
            search = partial(mend, self.patient, exporters, suspects(self.facts), folder)
            yield from self._step("change", search, self._not_mended, last=True)

    def _to_be_mended(self) -> list[str]:
        """Return the exporters that need a change: all if none is correct, or those that failed where only `to_onnx` is correct."""
        requested = [name for name in self.options.exporters if name != FLOOR] or list(self.options.exporters)
        right = {trial.exporter for trial in self.facts.tried if self.facts.is_right(trial) and not trial.only} & set(requested)
        if not right:
            return requested
        stuck = [trial.exporter for trial in self.facts.tried if trial.plain and trial.outcome in STUCK and trial.exporter in requested]
        return stuck if right == {REFUSES} else []

    def _not_mended(self, failure: Failure) -> Event | None:
        """Report that the search for changes was incomplete, unless it has already found one."""
        if self.facts.mended is not None and failure.kind == "timeout":
            return None
        return LeftOut("changes of your code", _why(failure))

    def _is_done(self, workaround: Workaround) -> bool:
        """Return whether an export is already correct. The same workaround with another exporter is still tried."""
        onnx = [exporter for exporter in self.options.exporters if exporter != FLOOR]
        right = [trial for trial in self.facts.tried if self.facts.is_right(trial) and trial.exporter != FLOOR]
        return not onnx or any(not workaround.before or trial.before != workaround.before for trial in right)

    def _fits(self, workaround: Workaround) -> bool:
        """Return whether a workaround may help. It must use a requested exporter, or the legacy one if the model is small enough."""
        large = self.facts.eager is not None and self.facts.eager.weights > EXTERNAL_DATA_ABOVE
        if workaround.exporter in COPIES:
            return not large and self.options.exporters == DOCTORS
        return workaround.exporter in self.options.exporters and workaround.fits(self.patient, self.facts.tried)

    def _save(self) -> Iterator[Event]:
        chosen = find_best_trial(self.facts)
        if self.options.save is not None and chosen is not None:
            yield from self._step("save", partial(save, chosen, self.options.save), _not_saved)


def _alone(call: Callable[[Tell], None], tell: Tell) -> None:
    """Run a call in the child process with one thread, because a fork doesn't copy the threads of OpenMP."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        call(tell)
    finally:
        torch.set_num_threads(threads)  # without forks, this is the user's process


def _capture(patient: Subject, how: str, tell: Tell) -> None:
    tell(Capture(how, capture(patient, how)))


def _try(workaround: Workaround, patient: Subject, trial: Trial, folder: Path, tell: Tell) -> None:
    before = workaround.lines(patient) if workaround.lines else trial.before
    with workaround.around(patient):
        changed = workaround.change(patient)
        own = format_dynamic_shapes(changed.dynamic_shapes) if workaround.has_own_shapes else ""
        try_export(changed, replace(trial, shapes=own, before=before), folder, tell, workaround.wrapped)


def _unusable(failure: Failure) -> Event:
    where = OUR_DEFECT if failure.internal else "the model itself, before any export"
    return Unusable(replace(failure, error=f"{where}: {failure.error}"))


def _no_capture(how: str, failure: Failure) -> Event:
    return LeftOut(f"capture, {how}") if failure is NO_TIME else Capture(how, failure)


def _no_help(trial: Trial, failure: Failure) -> Event | None:
    return LeftOut(trial.label) if failure is NO_TIME else None


def _not_saved(failure: Failure) -> Event:
    return LeftOut("save", _why(failure))


def _why(failure: Failure) -> str:
    """Return why a step was skipped, without the type of the limit: `not done after 48 s`."""
    return failure.error.removeprefix("TimeLimit: ")


@cache
def warm_up(exporters: tuple[str, ...]) -> None:
    """Run the one-time initialisation of the exporters before any process is forked."""
    warmed_up(exporters)


def check_exporters(names: Sequence[str]) -> None:
    """Raise a ValueError if an exporter is unknown or can't run here."""
    for name in names:
        get(name)
