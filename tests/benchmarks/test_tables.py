"""The tables of the benchmarks' pages, computed a second time from the JSON of the stored runs; and what every page has to say."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Callable, Sequence

import pytest
from recomputed import ROOT, SPOKEN, interval, over, rows

from exportlab.measure import tables as measured
from exportlab.measure.timing import Timings
from exportlab.show.table import Table

WITH_TABLES = (
    "captures",
    "cpp_programs",
    "export_time",
    "graph_size",
    "latency",
    "llama_layers",
    "memory",
    "optimisers",
    "own_exporter",
    "start_up",
    "transformer_files",
)
UNITS = {"ms": 1000.0, "MB": 1e-6, "nodes": 1.0, "s": 1.0}
BEFORE = ("", "time, ", "large, ", "memory, ")  # stands before the name of the model in some titles


def by_reader(name: str) -> str:
    who, comma, how = name.partition(", ")
    return SPOKEN.get(who, who) + comma + how


def near(shown: str, exact: float) -> bool:
    """Whether a number is shown to its last digit; thousands are set apart."""
    digits = shown.replace(",", "").partition(".")[2]
    return abs(float(shown.replace(",", "")) - exact) <= 0.51 * 10.0 ** -len(digits) * max(
        1, 10 ** (len(str(int(exact))) - 3 if not digits else 0)
    )


@pytest.mark.parametrize("page", WITH_TABLES)
def test_tables_are_those_of_the_stored_run(tables: Callable[[str], Sequence[Table]], page: str) -> None:
    seen, _ = rows(page)
    for table in tables(page):
        (first, who, unit, times, _) = table.rows[0]
        kind = "memory, " if unit == "MB" and page == "captures" else ""
        for row in table.rows:
            title = next(before + row[first] for before in ([kind] if kind else BEFORE) if before + row[first] in seen)
            taken = {by_reader(name): values for name, values in seen[title].items()}
            own, base = taken[row[who]], taken.get(times.removeprefix("times "))
            assert near(row[unit], UNITS[unit] * statistics.median(own)), row
            if base is None:
                assert (row[times], row["interval"]) == ("", "")
                continue
            assert near(row[times], statistics.median(over(own, base))), row
            if row["interval"]:
                low, high = interval(over(own, base))
                assert all(near(*pair) for pair in zip(re.findall(r"[\d.]+", row["interval"]), (low, high), strict=True)), row
                assert ("no difference seen" in row["interval"]) == (low <= 1 <= high)


def test_a_group_without_the_base_shows_no_ratios() -> None:
    groups = {"a": Timings((), ({"x": 1.0, "y": 3.0},) * 6), "b": Timings((), ({"y": 2.0},) * 6)}
    found = measured.compared(groups, "x", unit="s", title="A run").rows
    assert [list(row.values()) for row in found] == [
        ["a", "x", "1", "1.00", ""],
        ["a", "y", "3", "3.0", "3.0–3.0"],
        ["b", "y", "2", "", ""],
    ]


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_every_page_says_what_it_does_not_show(script: object) -> None:
    assert "# What this does not show\n# ----" in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", WITH_TABLES)
def test_what_a_page_closes_with_is_what_it_opened_with(page: str) -> None:
    """A page is one long module: a model that takes the name of a function takes its place at the end."""
    tree = ast.parse((ROOT / "benchmarks" / f"{page}.py").read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assigned = {name.id for node in outside for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    assert not defined & assigned
