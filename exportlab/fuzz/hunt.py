"""A hunt: random programs until the time is up, each by several exporters; what is wrong is shrunk to the smallest program."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, Verbosity, assume, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from ..exporters import Exporter
from ..outcomes import Outcome
from .finding import Finding
from .program import MOVING, WIDE, Program, Step
from .steps import LAYERS, PARTS, STEPS, WRITTEN, forms
from .trial import Trial, run_trial, runs

PROGRAMS, LONGEST, LARGEST = 50, 6, 3  # of one round; steps of a program; number of a step


def programs() -> st.SearchStrategy[Program]:
    """Return programs of steps of every kind; the simplest are short ones, of steps that are written here, with rows that move."""
    operators = [name for name in forms() if name not in WRITTEN]
    return st.sampled_from(list(MOVING)).flatmap(lambda moving: _moving(moving, operators))


def _moving(moving: str, operators: list[str]) -> st.SearchStrategy[Program]:
    """Programs in which these axes move. Layers have as many columns as they were made for."""
    layers = [] if moving == WIDE else [*LAYERS, *PARTS]
    names = st.one_of(*(st.sampled_from(kind) for kind in ([*STEPS], operators, layers) if kind))
    step = st.builds(Step, names, st.integers(1, LARGEST))
    return st.lists(step, min_size=1, max_size=LONGEST).map(lambda steps: Program(tuple(steps), moving))


class _Found(AssertionError):
    """A program that shows a defect, for Hypothesis to shrink."""


class _TimeIsUp(BaseException):
    """Passes through Hypothesis, which takes every `Exception` for a defect."""


@dataclass
class Hunt:
    """Programs of one seed, and what came of them; `findings` and `counts` are right at every moment, also when it is interrupted."""

    exporters: Sequence[Exporter]
    seed: int = 0
    told: Callable[[Hunt], None] = lambda hunt: None
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: list[Finding] = field(default_factory=list)
    programs: int = 0
    _smallest: tuple[Program, Trial] | None = None
    _until: float = 0.0

    def run(self, seconds: float) -> None:
        """Hunt for so long. What was being shrunk when the time was up, or at an interrupt, is kept as small as it was."""
        self._until = time.monotonic() + seconds
        turn, drawn = 0, programs()
        try:
            while True:
                self._round(drawn, self.seed * 1_000_003 + turn)
                turn += 1
        except _TimeIsUp:
            return
        finally:
            self._keep()

    def _round(self, drawn: st.SearchStrategy[Program], seed: int) -> None:
        looked = settings(
            max_examples=PROGRAMS,
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )(given(drawn)(self._look))
        try:
            seeded(seed)(looked)()
        except _Found:
            self._keep()

    def _look(self, program: Program) -> None:
        if time.monotonic() > self._until:
            raise _TimeIsUp
        assume(runs(program))
        shrinking = self._smallest and self._smallest[1].exporter
        for exporter in self.exporters:
            if shrinking in (None, exporter.name) and not self._known(program, exporter.name):
                self._judge(program, run_trial(program, exporter), shrinking is None)
        if shrinking is None:
            self.programs += 1
            self.told(self)

    def _judge(self, program: Program, trial: Trial, counted: bool) -> None:
        if counted:
            self.counts[trial.exporter, trial.outcome] += 1
            self.refused += [Finding(program, trial)] * (trial.outcome is not Outcome.OK and not trial.found)
        if not trial.found or (self._smallest and trial.outcome is not self._smallest[1].outcome):
            return
        if self._smallest is None or _size(program) <= _size(self._smallest[0]):
            self._smallest = program, trial
        raise _Found

    def _known(self, program: Program, exporter: str) -> bool:
        """Whether it holds all steps of what was found before, so that nothing new can be told of it."""
        return any(found.exporter == exporter and found.program.names <= program.names for found in self.findings)

    def _keep(self) -> None:
        if self._smallest is not None:
            program, trial = self._smallest
            self.findings.append(Finding(program, trial))
            self._smallest = None


def _size(program: Program) -> tuple[int, int]:
    """What is made small: the number of steps, then what moves."""
    return len(program.steps), list(MOVING).index(program.moving)
