"""Hunt for defects: export random programs with several exporters until the time is up, and shrink each failing program."""

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

PROGRAMS, LONGEST, LARGEST = 50, 6, 3  # programs per round; steps per program; maximum number of a step


def programs() -> st.SearchStrategy[Program]:
    """Return programs with steps of all kinds. The simplest are short, use the steps defined here, and have dynamic rows."""
    operators = [name for name in forms() if name not in WRITTEN]
    return st.sampled_from(list(MOVING)).flatmap(lambda moving: _moving(moving, operators))


def _moving(moving: str, operators: list[str]) -> st.SearchStrategy[Program]:
    """Return programs with these dynamic axes. Layers have a fixed number of columns."""
    layers = [] if moving == WIDE else [*LAYERS, *PARTS]
    names = st.one_of(*(st.sampled_from(kind) for kind in ([*STEPS], operators, layers) if kind))
    step = st.builds(Step, names, st.integers(1, LARGEST))
    return st.lists(step, min_size=1, max_size=LONGEST).map(lambda steps: Program(tuple(steps), moving))


class _Found(AssertionError):
    """A program with a defect, for Hypothesis to shrink."""


class _TimeIsUp(BaseException):
    """Ends a round. Not an `Exception`, which Hypothesis would treat as a defect."""


@dataclass
class Hunt:
    """Programs from one seed and their results. `findings` and `counts` are valid at any time, also after an interrupt."""

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
        """Hunt for so many seconds. At the end or at an interrupt, keep the smallest program found so far."""
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
        """Return whether a program contains all steps of an earlier finding, which makes it redundant."""
        return any(found.exporter == exporter and found.program.names <= program.names for found in self.findings)

    def _keep(self) -> None:
        if self._smallest is not None:
            program, trial = self._smallest
            self.findings.append(Finding(program, trial))
            self._smallest = None


def _size(program: Program) -> tuple[int, int]:
    """Return the size to minimise: the number of steps, then the dynamic axes."""
    return len(program.steps), list(MOVING).index(program.moving)
