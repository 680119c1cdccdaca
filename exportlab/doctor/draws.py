"""Look for a change of the line that draws random numbers which makes the export right: each is tried, and only what works is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ..cases import Sample
from ..eager import fresh, last_returned
from ..exporters.to_onnx import shown_path
from ..messages import heard
from ..verification.difference import difference_of
from .edits import Draft, blocks, draft_of, in_force
from .events import Mended, Tell
from .facts import OFFICIAL
from .lines import SourceLine
from .paths import seen_at
from .patient import Patient, patient_of, written
from .rewrite import CannotRewrite, Change, Source, source_at
from .rewrite_calls import drawn_at, only_in_training, with_numbers_given
from .watch import is_right

SEED = 1
GIVEN = "draw the numbers outside, and pass them as an input"
IN_TRAINING = "drop in training mode alone, as nn.Dropout does"
TO_EXPORT = "# and to export it"
EXPORT = """{to_export}
noise = {noise}  # one of this shape; for each call: {drawn}
exportlab.export("{exporter}", {model}, args, {{**kwargs, "noise": noise}}{shapes}).save("model.onnx")"""


@dataclass(frozen=True)
class Drawing:
    """A patient, the line at which it draws, and what is to be tried on it."""

    patient: Patient
    exporters: Sequence[str]
    place: SourceLine
    folder: Path

    def draft(self, change: Callable[[Source], Change], number: int) -> Draft:
        """Return the file with the change.

        Raises:
            CannotRewrite: it does not know the statement.
        """
        source = source_at(self.place.file, self.place.line)
        if source is None:
            raise CannotRewrite
        return draft_of(self.place.file).with_change(change(source), self.folder, number)

    def in_training(self) -> Mended:
        """Return the change that draws in training mode alone; without a place where it is not right.

        Raises:
            CannotRewrite: it is no dropout.
        """
        draft = self.draft(only_in_training, 1)
        with in_force(draft):
            right = self._right(self.patient)
        return self._mended(draft, IN_TRAINING, right)

    def given(self) -> Mended:
        """Return the change that takes the numbers as an argument; without a place where it is not right.

        Raises:
            CannotRewrite: what is drawn there cannot be taken out of the function.
        """
        draft, drawn = self.draft(with_numbers_given, 2), drawn_at(source_at(self.place.file, self.place.line))
        samples = [self._with_numbers(sample, drawn) for sample in self.patient.samples]
        wanted = [self._eager(sample) for sample in self.patient.samples]
        with in_force(draft):
            if any(difference_of(self._eager(s), w).problem for s, w in zip(samples, wanted, strict=True)):
                return Mended()
            patient = replace(patient_of(self.patient.module, samples, train=self.patient.train), made=())
            right = self._right(patient)
        found = self._mended(draft, GIVEN, right)
        return replace(found, code="\n".join([found.code, self._to_export(patient, drawn, right)])) if right else found

    def _with_numbers(self, sample: Sample, drawn: str) -> Sample:
        """The sample with the numbers that the model draws for it after `SEED`."""
        seen = seen_at(self.place.file, self.place.line, [lambda: self._eager(sample)])
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(SEED)
            return Sample(sample.args, {**sample.kwargs, "noise": seen[0].value(drawn)})

    def _eager(self, sample: Sample) -> object:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            return last_returned(fresh(self.patient.module), (sample,))

    def _right(self, patient: Patient) -> tuple[str, ...]:
        return tuple(name for name in self.exporters if is_right(name, patient.module, patient.all, patient.dynamic_shapes))

    def _mended(self, draft: Draft, what: str, right: tuple[str, ...]) -> Mended:
        shown = self.place.where.rpartition(":")[0] or shown_path(draft.file)
        return Mended(self.place, what, blocks(draft, shown), right) if right else Mended()

    def _to_export(self, patient: Patient, drawn: str, right: Sequence[str]) -> str:
        noise = patient.samples[0].kwargs["noise"]
        return EXPORT.format(
            to_export=TO_EXPORT,
            noise=f"torch.zeros({tuple(noise.shape)}, dtype={noise.dtype})",
            drawn=drawn,
            exporter=OFFICIAL if OFFICIAL in right else right[0],
            model="module" if patient.train else "module.eval()",
            shapes=f", dynamic_shapes={written(patient.dynamic_shapes)}" if patient.dynamic_shapes else "",
        )


def try_draws(patient: Patient, exporters: Sequence[str], place: SourceLine | None, folder: Path, tell: Tell) -> None:
    """Tell the change of the line that draws which was seen to be right; nothing where there is none."""
    drawing = Drawing(patient, exporters, place, folder) if place is not None else None
    with heard():
        for change in (drawing.in_training, drawing.given) if drawing else ():
            with suppress(Exception):  # a change that cannot be made, or run, is none
                found = change()
                if found.at is not None:
                    tell(found)
                    break
    tell(Mended())
