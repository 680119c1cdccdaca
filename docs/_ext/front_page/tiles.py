"""Compute the three numbers of the landing page from stored data: silently wrong exports, export times and known errors."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from support_matrix.heatmap import address

from exportlab.errors import load_known_errors
from exportlab.sweep.page.counts import Runs, scores

DEFAULT, OWN = "dynamo", "to_onnx"
EXPORT = "export, "  # titles of a run's measurements begin with what was measured


@dataclass(frozen=True)
class Tile:
    """A number, what it counts, and the page that explains it."""

    number: str
    text: str
    page: str
    link: str


def build_tiles(runs: Runs, real_sizes: Path) -> list[Tile]:
    """Return the three tiles.

    Args:
        runs: those of the support matrix.
        real_sizes: the stored run of the benchmark of real models.
    """
    return [count_silent(runs), compare_times(read_medians(real_sizes)), count_errors()]


def count_silent(runs: Runs) -> Tile:
    """Count the exports with dynamic shapes by the default exporter that are silently wrong."""
    (score,) = (score for score in scores(runs) if score.name == DEFAULT)
    text = "test cases with dynamic shapes run but give wrong results with `torch.onnx.export`, without a warning of the cause."
    return Tile(f"{score.silent} of {score.total}", text, f"docs/support.html{address('', DEFAULT)}", "Show these test cases")


def compare_times(medians: Mapping[str, Mapping[str, float]]) -> Tile:
    """Compare the export times of the default exporter and ours, for the models that both export."""
    both = [row for row in medians.values() if {DEFAULT, OWN} <= row.keys()]
    ours, theirs = (reach([row[name] for row in both]) for name in (OWN, DEFAULT))
    text = (
        f"is the time that `torch.onnx.export` needs for each of {len(both)} full-size models. Our own exporter, `to_onnx`, needs {ours}."
    )
    return Tile(theirs, text, "generated/benchmarks/real_sizes.html", "Compare the exporters")


def read_medians(path: Path) -> dict[str, dict[str, float]]:
    """Return the median export time in seconds, by model and exporter."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for row in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
        title = row["metadata"]["title"]
        if title.startswith(EXPORT):
            values = [value for run in row["runs"] for value in run["values"]]
            found[title.removeprefix(EXPORT)][row["metadata"]["label"]] = median(values)
    return dict(found)


def reach(seconds: list[float]) -> str:
    """Return the shortest and the longest time, with two digits."""
    return f"{min(seconds):.2g}–{max(seconds):.2g} s"


def count_errors() -> Tile:
    """Count the known errors and their fixes."""
    errors = load_known_errors()
    fixes = sum(len(error.fixes) for error in errors)
    return Tile(
        f"{len(errors)} errors",
        f"each have a page with the cause and with tested fixes, {fixes} in total.",
        "docs/errors.html",
        "Find your error",
    )
