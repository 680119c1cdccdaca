"""Write a profile to files: its nodes as a table, a typical run as a picture, or everything as a page."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...files import atomic_write
from ...show.templates import environment
from ...show.themed import SETTINGS, render_themed_svg
from .result import NodeTime, Profile
from .timeline import save_timeline, timeline

COLUMNS = ("node", "operator", "provider", "module", "class", "lines", "of", "share", "median_seconds", "seconds")


def save_csv(found: Profile, path: Path) -> None:
    """Write a row for each node, the slowest first. Multiple source lines share a cell, separated by newlines.

    Raises:
        OSError: the file cannot be written.
    """
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in rows(found):
            writer.writerow(row | {"lines": "\n".join(row["lines"]), "seconds": " ".join(map(str, row["seconds"]))})


def save_json(found: Profile, path: Path) -> None:
    """Write the nodes, the seconds of each run, and the notes.

    Raises:
        OSError: the file cannot be written.
    """
    told = {"file": found.file, "run_seconds": [run.seconds for run in found.runs], "unknown": found.unknown(), "said": found.said()}
    with atomic_write(path) as draft:
        draft.write_text(json.dumps(told | {"nodes": rows(found)}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def save_page(found: Profile, path: Path) -> None:
    """Write a self-contained page with the tables, the notes, and a picture of a typical run.

    Raises:
        OSError: the file cannot be written.
    """
    from matplotlib import pyplot, rc_context

    with rc_context(SETTINGS):
        figure = timeline(found)
        drawn = render_themed_svg(figure, "run")
        pyplot.close(figure)
    page = environment(Path(__file__).parent).get_template("profile.html.j2").render(found=found, drawn=drawn)
    with atomic_write(path) as draft:
        draft.write_text(page, encoding="utf-8")


def rows(found: Profile) -> list[dict[str, Any]]:
    """Return a row for each node, the slowest first. The column `of` counts the nodes of the file that it replaces."""
    return sorted((_row(node, found.total) for node in found.nodes), key=lambda row: -row["share"])


def _row(node: NodeTime, total: float) -> dict[str, Any]:
    median, (path, kind) = statistics.median(node.seconds), node.origin.module or ("", "")
    about = (node.name, node.op, node.provider, path, kind, list(node.origin.lines), node.origin.of)
    return dict(zip(COLUMNS, (*about, median / total if total else 0.0, median, list(node.seconds)), strict=True))


WRITERS: Mapping[str, Callable[[Profile, Path], None]] = {
    ".csv": save_csv,
    ".html": save_page,
    ".json": save_json,
    ".png": save_timeline,
    ".svg": save_timeline,
}
