"""What a benchmark's page says of a stored run, which need not be the one that is stored."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from matplotlib import pyplot
from recomputed import ROOT, Lines

from exportlab.measure import benchmark
from exportlab.show.table import Table


class OpenedError(Exception):
    """A page has come to the line that shows what it found before."""


@pytest.fixture(autouse=True)
def _drawn() -> Iterator[None]:
    """A page leaves its figures to whoever shows it."""
    yield
    pyplot.close("all")


@pytest.fixture
def headline(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Lines]:
    """Return what a page says first of its stored run, before which line nothing has been measured."""

    return lambda name: opened(name, monkeypatch)[0]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Sequence[Table]]:
    """Return the tables that a page shows of its stored run."""
    return lambda name: opened(name, monkeypatch)[1]


def opened(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Lines, Sequence[Table]]:
    """Run a page to where it shows its stored run, and return what that says and its tables."""
    said: list[tuple[Lines, Sequence[Table]]] = []

    def begun(page: benchmark.Page, origin: str, lines: Lines, draw: object, tables: Sequence[Table] = ()) -> None:
        said.append((lines, tables))
        raise OpenedError

    monkeypatch.setattr(benchmark.Page, "begin", begun)
    monkeypatch.setattr(sys, "argv", [name, "--quick"])
    with pytest.raises(OpenedError):
        runpy.run_path(str(ROOT / f"benchmarks/{name}.py"), run_name="__main__")
    return said[0]


@pytest.fixture
def stored_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in which the pages look for what is stored."""
    (tmp_path / "benchmarks/data").mkdir(parents=True)
    (tmp_path / "docs/data").mkdir(parents=True)
    monkeypatch.setattr(benchmark, "DATA", tmp_path / "benchmarks/data")
    return tmp_path
