"""Count the outcomes of a sweep by exporter and mode, and how often each exporter is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ... import exporters
from ...defaults import MODES
from ...outcomes import Mark, Outcome, mark
from .. import records
from ..changes import find_worst_record
from ..devices import places
from ..records import Record

WARNED = str(Mark.WARNED)  # wrong or frozen, with a warning that names the cause
BESIDE = (WARNED, str(Mark.MASKED))  # wrong or frozen, but not counted as silent
OUTCOMES = tuple(outcome for outcome in Outcome if outcome is not Outcome.SKIPPED)  # a sweep doesn't record skipped runs

Cell = tuple[str, str, str]  # case, exporter, mode
Runs = Mapping[Cell, Sequence[Record]]  # all rounds of each run


@dataclass(frozen=True)
class Sweep:
    """A stored sweep: its records and their environments."""

    records: Sequence[Record]
    environments: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(cls, path: Path) -> Sweep:
        """Read the sweep of a file. Return an empty sweep if the file doesn't exist."""
        return cls(records.read(path), list(records.environments(path).values())) if path.exists() else cls([])

    @cached_property
    def runs(self) -> Runs:
        """Its records by case, exporter and mode."""
        return records.groups(self.records)

    def versions(self) -> list[str]:
        """Return the packages of its environments, such as `torch 2.13.0`."""
        named = {(key.removesuffix("_version"), value) for e in self.environments for key, value in e.items() if key.endswith("_version")}
        return sorted(f"{name} {value}" for name, value in named if name not in ("perf", "python"))

    def made_with(self) -> list[str]:
        """Return the packages, the dates and, if recorded, the devices of the sweep."""
        days = sorted({str(e.get("date", ""))[:10] for e in self.environments})
        return [*self.versions(), *days, *filter(None, [places(self.records)])]


def kind_of(record: Record) -> str:
    """Return the column of the totals that counts a record: its outcome if it is silent, else its mark."""
    return str(record.outcome if record.mark is Mark.SILENT else record.mark)


def kinds() -> dict[str, list[Outcome]]:
    """Return the columns of the totals with their outcomes, the most serious first."""
    silent: list[Outcome] = [outcome for outcome in OUTCOMES if outcome.silent]
    found: dict[str, list[Outcome]] = {**{str(outcome): [outcome] for outcome in silent}, **dict.fromkeys(BESIDE, silent)}
    for outcome in OUTCOMES:
        if not outcome.silent:
            found.setdefault(str(mark(outcome)), []).append(outcome)
    return found


def titles() -> dict[str, str]:
    """Return the headings of the columns of the totals."""
    return {kind: _title(kind, found[0]) for kind, found in kinds().items()}


def _title(kind: str, outcome: Outcome) -> str:
    if kind == WARNED:
        return "wrong or frozen, but warned"
    if kind == Mark.MASKED:
        return Mark.MASKED.meaning
    return f"{kind}, silently" if outcome.silent else kind


def choices() -> dict[str, tuple[str, str]]:
    """Return the choices of the outcome filter: their titles, and CSS selectors of the matching cells."""
    silent = [outcome for outcome in OUTCOMES if outcome.silent]
    not_ok = [outcome for outcome in OUTCOMES if outcome is not Outcome.OK]
    found = {"silent": (f"silent: {' or '.join(silent)}, and no message names the cause", _cells(silent, ""))}
    for kind, outcomes in kinds().items():
        more = f": {', '.join(outcomes)}" if len(outcomes) > 1 and kind not in BESIDE else ""
        found[kind] = (titles()[kind] + more, _cells(outcomes, kind if kind in BESIDE else ""))
    return {**found, "not ok": ("anything but ok", ",".join(f".{outcome}" for outcome in not_ok))}


def _cells(outcomes: Iterable[Outcome], beside: str) -> str:
    end = f".{beside}" if beside else "".join(f":not(.{kind})" for kind in BESIDE)
    return ",".join(f".{outcome}{end if outcome.silent else ''}" for outcome in outcomes)


def exporters_of(runs: Runs) -> list[str]:
    """Return the exporters of the runs in the package's order, followed by unknown exporters."""
    seen = {exporter for _, exporter, _ in runs}
    known = [name for name in exporters.available() if name in seen]
    return known + sorted(seen.difference(known))


def modes_of(runs: Runs) -> dict[str, list[str]]:
    """Return the modes that each exporter ran, `static` first."""
    seen = {(exporter, mode) for _, exporter, mode in runs}
    return {exporter: [mode for mode in MODES if (exporter, mode) in seen] for exporter in exporters_of(runs)}


def counts(runs: Runs) -> dict[tuple[str, str], Counter[str]]:
    """Count each kind of outcome by exporter and mode. Leave out combinations without a run."""
    found = {(exporter, mode): Counter[str]() for exporter in exporters_of(runs) for mode in MODES}
    for (_, exporter, mode), rounds in runs.items():
        found[exporter, mode][kind_of(find_worst_record(rounds))] += 1
    return {key: counter for key, counter in found.items() if counter}


@dataclass(frozen=True)
class Score:
    """How often an exporter was right, silently wrong, or wrong with a warning, in the cases with dynamic dimensions.

    A run that is right except where a mask hides everything counts as `masked`, not as right or silent.
    """

    name: str
    right: int
    masked: int
    silent: int
    warned: int
    total: int


def scores(runs: Runs) -> list[Score]:
    """Return the score of each exporter, sorted by the share of silently wrong cases."""
    dynamic = {exporter: counter for (exporter, mode), counter in counts(runs).items() if mode == "dynamic"}
    found = [
        Score(name, seen["ok"], seen[Mark.MASKED], sum(seen[o] for o in OUTCOMES if o.silent), seen[WARNED], seen.total())
        for name, seen in dynamic.items()
    ]
    return sorted(found, key=lambda score: (score.silent / score.total, -score.right))
