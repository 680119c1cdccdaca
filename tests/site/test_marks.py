"""Every page counts an export by one function, `exportlab.outcomes.mark`: what only an empty mask breaks is neither right nor wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import atlas
import pytest
from support_matrix import heatmap

from content import zoo
from exportlab.bench.result import Way
from exportlab.outcomes import Mark, Outcome
from exportlab.sweep import page, records
from exportlab.sweep.page import counts
from exportlab.sweep.page.counts import Sweep
from exportlab.sweep.records import Record
from exportlab.verification.comparison import Attempt

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "docs/_ext").rglob("*.py"), *(ROOT / "exportlab/sweep/page").rglob("*.py")]
RIGHT = Record("timm.a", "dynamo", "dynamic", Outcome.OK)


@pytest.fixture
def masked(monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """A sweep of one right export, which the function calls right except where a mask hides everything."""
    monkeypatch.setattr(records, "mark", lambda *_: Mark.MASKED)
    return Sweep([RIGHT])


def of_support(sweep: Sweep) -> bool:
    return "right in 0 of 1, right except where a mask hides everything in 1" in page.totals(sweep)


def of_atlas(sweep: Sweep) -> bool:
    (cost,) = atlas.families(sweep)
    return (cost.right, cost.masked, cost.compared) == (0, 1, 1)


def of_real_sizes(sweep: Sweep) -> bool:
    way = Way("dynamo", sweep.records)
    return (way.verdict, way.ranked) == (Mark.MASKED.meaning, True)


@pytest.mark.parametrize("page_of", [of_support, of_atlas, of_real_sizes])
def test_a_page_counts_by_the_one_function(page_of: Callable[[Sweep], bool], masked: Sweep) -> None:
    assert page_of(masked)


@pytest.mark.parametrize(("mark", "silent"), [(Mark.SILENT, 1), (Mark.MASKED, 0)])
def test_the_heatmap_counts_by_it_too(mark: Mark, silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "mark", lambda *_: mark)
    drawn = heatmap.build_heatmap(Sweep([replace(RIGHT, case="mlp")]).runs, [zoo.get("mlp")])
    assert drawn.total == heatmap.Cell(silent, 1)


def test_an_attempt_counts_by_it_too() -> None:
    assert Attempt("dynamo", Outcome.WRONG).mark is Mark.SILENT
    assert Attempt("dynamo", Outcome.OK).mark is Mark.OK


def test_no_page_decides_by_itself_what_a_mask_breaks() -> None:
    assert len(PAGES) > 30
    own = re.compile(r"only_closed|\bCLOSED\b|CLOSED_ALONE|only where a mask hides")
    assert not [path.name for path in PAGES if own.search(path.read_text(encoding="utf-8"))]
    users = [path.name for path in PAGES if path.name in ("captures.py", "real_sizes.py") and "Mark.MASKED" in path.read_text()]
    assert len(users) == 2


def test_the_stored_matrix_has_such_files_and_no_page_calls_them_silent() -> None:
    scores = {score.name: score for score in counts.scores(Sweep.read(ROOT / "docs/data/matrix.jsonl").runs)}
    assert scores["dynamo"].masked > 0
    assert scores["to_onnx"].silent == scores["to_onnx"].masked == 0
