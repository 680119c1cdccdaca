"""The page of what other releases change: counted a second time from the stored sweeps, and how a change is told."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import across_time as page
import pytest
from swept import RECORDS, Rows, sweep_of

from exportlab.outcomes import Outcome
from exportlab.sweep.page.counts import Sweep
from exportlab.sweep.records import Record

ROOT = Path(__file__).parents[2]
TODAY = {"torch": "atlas/transformers.jsonl.gz", "transformers": "atlas/transformers.jsonl.gz", "onnxscript": "matrix.jsonl"}
STEPS = {"ok": 0, "wrong": 2, "frozen": 2}


def rows_of(name: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The records of a stored file as JSON has them; none where there is no file."""
    path = ROOT / "docs/data" / name
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode() if path.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    return {(row["case"], row["exporter"], row["mode"]): row for row in rows if "case" in row}


def counted(package: str) -> tuple[int, list[int]]:
    """How many runs both releases have, and on which step each is now, less on which it was, where its outcome differs."""
    before = rows_of(f"previous/{package}.jsonl")
    today = rows_of(TODAY[package]) | rows_of(f"previous/{package}.now.jsonl")
    both = [(before[run]["outcome"], today[run]["outcome"]) for run in before.keys() & today.keys()]
    return len(both), [STEPS.get(now, 1) - STEPS.get(then, 1) for then, now in both if then != now]


@pytest.mark.parametrize("package", page.PACKAGES)
def test_the_headline_counted_a_second_time(package: str) -> None:
    total, steps = counted(package)
    made = " ".join(page.parts()[f"parts/across-{package}.html"].split())
    broke, better = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
    if steps:
        assert f"<strong>{len(steps)} of {total} outcomes differ</strong>: {broke} broke, {better} got better, " in made
    else:
        assert f"<strong>nothing changed in {total} outcomes</strong>" in made
    assert made.count("<tr>") == (len(steps) + 1 if steps else 0)


@pytest.mark.parametrize("package", page.PACKAGES)
def test_nothing_but_that_package_differs(package: str) -> None:
    found = page.compare_package(package)
    assert [version.split()[0] for version in found.versions] == [package, package]
    assert len(found.pairs) == len(found.before.runs), "each has a run of today's releases"


@pytest.mark.parametrize("package", page.PACKAGES)
def test_whatever_differs_was_made_again(package: str) -> None:
    again = rows_of(f"previous/{package}.now.jsonl")
    assert [row.change.run for row in page.compare_package(package).rows if row.change.run not in again] == []


def test_the_page_says_which_models_were_asked() -> None:
    torch, transformers = ({case for case, *_ in rows_of(f"previous/{name}.jsonl")} for name in ("torch", "transformers"))
    text = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
    assert f"{len(torch)} models of transformers" in text
    assert torch < transformers
    assert len(transformers - torch) == 8
    assert "the same models and eight more." in text


def test_the_summary_has_a_row_for_each_package() -> None:
    head, *rows = Rows(page.parts()["parts/across-summary.html"]).rows
    assert [text for _, text in head[2:5]] == ["compared", "as before", "broke"]
    for package, row in zip(page.PACKAGES, rows, strict=True):
        total, steps = counted(package)
        shown = [int(text) for _, text in row[2:]]
        assert shown[:5] == [total, total - len(steps), sum(s > 0 for s in steps), sum(s < 0 for s in steps), sum(s == 0 for s in steps)]


def test_a_change_says_what_turned_silent_and_what_turned_loud() -> None:
    failed = ({"check": "unseen size", "inputs": "f32[7]", "outcome": "wrong", "detail": "1 where eager has 2"},)

    def record(case: str, outcome: Outcome, error: str | None = None) -> Record:
        return Record(case, "dynamo", "dynamic", outcome, error=error, failed=failed if outcome.silent else ())

    before = [record("a", Outcome.OK), record("b", Outcome.WRONG), record("c", Outcome.CAPTURE, "E: once"), record("d", Outcome.OK)]
    now = [record("a", Outcome.WRONG), record("b", Outcome.RUN, "E: now"), record("c", Outcome.OK), record("d", Outcome.OK)]
    found = page.Compared("onnxscript", sweep_of(*before, onnxscript="1"), sweep_of(*now))
    assert [(r.now.case, r.exporter, r.change.kind, r.turned, r.said) for r in found.rows] == [
        ("a", "torch.onnx.export", "broke", "silent", "1 where eager has 2"),
        ("b", "torch.onnx.export", "better", "loud", "E: now"),
        ("c", "torch.onnx.export", "better", "", "E: once"),
    ]
    assert found.versions == ["onnxscript 1", "onnxscript 2"]
    assert "<strong>3 of 4 outcomes differ</strong>" in page.render_template("across_package.html", found=found)


def test_nothing_changed_is_said() -> None:
    sweep = sweep_of(*RECORDS)
    made = page.render_template("across_package.html", found=page.Compared("onnxscript", sweep, sweep))
    assert f"<strong>nothing changed in {len(RECORDS)} outcomes</strong>" in made
    assert "<table" not in made


def test_the_nodes_of_our_own_files_are_not_counted() -> None:
    def sweep(nodes: int) -> Sweep:
        return Sweep([Record("mlp", name, "static", Outcome.OK, nodes=nodes) for name in ("dynamo", "to_onnx")])

    assert page.Compared("torch", sweep(1), sweep(2)).redrawn == {"torch.onnx.export": (1, 1)}


def test_the_page_includes_every_part() -> None:
    text = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
    assert re.findall(r":file: \.\./generated/(parts/across-\S+)", text) == list(page.parts())
    for part in page.parts().values():
        assert Rows(part).open == [], "every element is closed"
