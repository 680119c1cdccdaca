"""Run `exportlab fuzz`: export random programs with several exporters."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import show
from ..exporters import get
from ..outcomes import Outcome
from ..target import BadInput
from . import validation
from .exit_codes import Interrupted, NotRight

if TYPE_CHECKING:
    from ..fuzz import Hunt

PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")
COLUMNS = {
    "right": (Outcome.OK,),
    "refused": (Outcome.CAPTURE, Outcome.CONVERT, Outcome.LOAD, Outcome.RUN, Outcome.NARROW, Outcome.SKIPPED),
    "wrong": (Outcome.WRONG, Outcome.FROZEN),
    "crashed": (Outcome.CRASH, Outcome.TIMEOUT),
}


def hunt(minutes: float, seed: int, exporters: Sequence[str], output: Path) -> None:
    """Search for wrong exports, write a script for each finding to a folder, and print a table.

    Raises:
        BadInput: an exporter or Hypothesis is not installed. NotRight: an export is silently wrong. Interrupted: by the user.
    """
    if importlib.util.find_spec("hypothesis") is None:
        raise BadInput("fuzz needs Hypothesis, which is not installed: pip install hypothesis")
    validation.check_named("exporters", exporters)
    for name in exporters:
        validation.check_exporter(name)
    from ..fuzz import Hunt
    from ..sweep.warm_up import warmed_up

    warmed_up(exporters)
    made = Hunt([get(name) for name in exporters], seed, _tell)
    try:
        made.run(minutes * 60)
    except KeyboardInterrupt as error:
        _close(made, output, minutes)
        raise Interrupted(f"interrupted; the findings so far are in {output}") from error
    _close(made, output, minutes)
    if wrong := [found for found in made.findings if found.trial.silent]:
        raise NotRight(f"found {len(wrong)} silently wrong exports: see the scripts in {output}")


def _tell(made: Hunt) -> None:
    print(f"\r{made.programs} programs, {len(made.findings)} findings", end="", file=sys.stderr, flush=True)


def _close(made: Hunt, output: Path, minutes: float) -> None:
    from ..fuzz.finding import write_all

    validation.write_file(lambda: write_all(made.findings, output, made.refused, _totals(made, minutes)), output)
    print(file=sys.stderr)
    rows = [{"exporter": exporter.name, **_count_by_column(made, exporter.name)} for exporter in made.exporters]
    print(show.table(rows, f"{made.programs} programs with seed {made.seed}"))
    for found in made.findings:
        print(f"{found.exporter}: {found.trial.outcome}: {found.name}.py: {found.trial.seen}")


def _count_by_column(made: Hunt, exporter: str) -> dict[str, int]:
    return {column: sum(made.counts[exporter, outcome] for outcome in outcomes) for column, outcomes in COLUMNS.items()}


def _totals(made: Hunt, minutes: float) -> dict[str, Any]:
    """Return the summary of a run: its date, seed, duration, versions and counts per exporter."""
    of_each = {exporter.name: _count_by_column(made, exporter.name) for exporter in made.exporters}
    about = {"date": f"{date.today()}", "seed": made.seed, "minutes": minutes, "programs": made.programs}
    return {**about, "versions": {name: version(name) for name in PACKAGES}, "exporters": of_each, "found": len(made.findings)}
