"""Write the results of a benchmark: a page, the times as CSV and pyperf JSON, and the figures."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import show
from ..files import atomic_write
from ..measure.benchmark import save
from ..measure.timing import Timings, chance
from ..show.templates import environment as templates
from ..sweep.records import environments
from .figures import save_figures
from .result import CALL, EAGER, Bench, Way
from .run import RECORDS

PAGE, TIMES, PYPERF = "report.html", "times.csv", "pyperf.json"
ONCE = ("export", "save", "load", "first")
COLUMNS = (
    "run by", "round", "outcome", "size", "call_seconds", "eager_seconds", *(f"{name}_seconds" for name in ONCE),
    "peak_bytes", "bytes", "nodes", "error",
)  # fmt: skip


def write_all(bench: Bench, folder: Path) -> list[Path]:
    """Write page, tables and figures, and return the paths of the files.

    Raises:
        OSError: a file cannot be written.
    """
    made_in = list(environments(folder / RECORDS).values())[-1]
    _write_csv(bench, folder / TIMES)
    if timings := _timings(bench):
        save(folder / PYPERF, timings, {key: value for key, value in made_in.items() if key != "id"})
    drawn = save_figures(bench, folder)
    with atomic_write(folder / PAGE) as draft:
        draft.write_text(page(bench, made_in, drawn), encoding="utf-8")
    return [path for path in (folder / PAGE, folder / TIMES, folder / PYPERF) if path.exists()]


def page(bench: Bench, made_in: dict[str, Any], drawn: dict[str, tuple[str, str]]) -> str:
    """Return the report as a self-contained page. Texts from the model and its errors are escaped."""
    rounds = max((record.round for record in bench.records), default=0)
    tables = {"Export and file": bench.files(), "Time of a call": bench.calls()}
    values = {"tables": tables, "findings": bench.findings(), "chance": chance(rounds), "rounds": rounds, "colors": show.OUTCOME_COLORS}
    return templates(Path(__file__).parent).get_template("bench.html.j2").render(bench=bench, made_in=made_in, drawn=drawn, **values)


def _write_csv(bench: Bench, path: Path) -> None:
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for way in bench.ways().values():
            writer.writerows(_lines(way))


def _lines(way: Way) -> Iterator[dict[str, Any]]:
    """Yield a line per round and size, or one line for a round without a timed size."""
    for record in way.records:
        same = {"run by": way.spoken, "round": record.round, "outcome": record.outcome, "error": record.error or ""}
        same |= {f"{name}_seconds": record.seconds.get(name, "") for name in ONCE}
        same |= {name: getattr(record, name) for name in ("peak_bytes", "bytes", "nodes")}
        for size in [name.removeprefix(CALL) for name in record.seconds if name.startswith(CALL)] or [""]:
            calls = {f"{who}_seconds": record.seconds.get(begin + size, "") for who, begin in (("call", CALL), ("eager", EAGER))}
            yield {**same, "size": size, **calls}


def _timings(bench: Bench) -> dict[str, Timings]:
    """Return the seconds of each way, one value per round. Leave out figures that some rounds lack, and calls of wrong models."""
    found = {}
    for way in bench.ways().values():
        figures = [name for name in way.records[0].seconds if all(name in record.seconds for record in way.records)]
        kept = [name for name in figures if way.ranked or not name.startswith((CALL, EAGER))]
        if kept:
            found[way.spoken] = Timings((), tuple({name: record.seconds[name] for name in kept} for record in way.records))
    return found
