"""`exportlab report`: records of anybody's sweep as a page or a table; of two, what changed."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from exportlab import cli
from exportlab.cases import registered
from exportlab.outcomes import Outcome
from exportlab.sweep.records import SCHEMA, Record, environment

FOUND = [
    Record("mine<b>", "dynamo", "dynamic", Outcome.CONVERT, error="ValueError: <i>no</i>"),
    Record("mine<b>", "to_onnx", "dynamic", Outcome.OK, ran_on=("CUDAExecutionProvider", "CPUExecutionProvider")),
]
CASES = '''
import torch
from torch import nn
from exportlab import case

@case(dims={"batch": (2, 3)})
def mine():
    """Is this shown?"""
    return nn.ReLU(), (torch.ones(2),)
'''


def stored(path: Path, records: list[Record]) -> Path:
    lines = [json.dumps({"schema": SCHEMA, "environment": environment(1)}), *(record.line() for record in records)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / "a.jsonl", FOUND)
    stored(tmp_path / "b.jsonl", [FOUND[0], replace(FOUND[1], outcome=Outcome.WRONG)])
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["exportlab", "report", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_a_page_of_records_alone_opens_anywhere_and_escapes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "a.jsonl", "-o", "r.html") == 0
    page = (folder / "r.html").read_text()
    assert "1 case, 2 runs" in page
    assert "mine<b>" not in page
    assert "<i>no</i>" not in page
    assert "What changed" not in page
    assert "src=" not in page
    assert '"outcome":"convert"' in page


def test_a_table_as_csv_says_what_ran_it_and_markdown_names_the_call(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "a.jsonl", "-o", "r.csv") == 0
    assert run(monkeypatch, "a.jsonl", "-o", "r.md") == 0
    with (folder / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["ran_on"] for row in rows] == ["", "CUDAExecutionProvider, CPUExecutionProvider"]
    assert (folder / "r.md").read_text().splitlines() == [
        "| case | to_onnx | torch.onnx.export |", "| --- | --- | --- |", "| mine<b> | ok | convert |",
    ]  # fmt: skip


def test_of_two_it_says_what_changed(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "a.jsonl", "b.jsonl", "-o", "r.html") == 0
    assert "to_onnx: ok → wrong (broke)" in capsys.readouterr().out
    assert "mine&lt;b&gt;, dynamic, to_onnx: ok → wrong (broke)" in (folder / "r.html").read_text()
    assert run(monkeypatch, "a.jsonl", "b.jsonl", "-o", "r.md") == 0
    assert "ok → wrong (broke)" in (folder / "r.md").read_text()


def test_sources_are_shown_of_the_cases_that_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cases.py").write_text(CASES)
    stored(folder / "c.jsonl", [replace(FOUND[1], case="mine")])
    assert run(monkeypatch, "c.jsonl", "-o", "r.html", "--cases", "cases.py") == 0
    assert "Is this shown?" in (folder / "r.html").read_text()


@pytest.mark.parametrize(("file", "shown"), [("", True), ("mine.py", False)])
def test_a_case_of_a_users_file_is_not_the_zoos_that_is_called_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, shown: bool
) -> None:
    name, case = next(iter(registered().items()))
    stored(folder / "c.jsonl", [replace(FOUND[1], case=name, file=file)])
    assert run(monkeypatch, "c.jsonl", "-o", "r.html") == 0
    assert (escape(case.doc.splitlines()[0]) in (folder / "r.html").read_text()) is shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.jsonl", "-o", "r.pdf"), "unsupported report format '.pdf': use a file that ends in .html, .csv or .md"),
        (("a.jsonl", "-o", "a.jsonl"), "a.jsonl contains the records: choose another file with --output"),
        (
            ("a.jsonl", "b.jsonl", "a.jsonl", "-o", "r.md"),
            "report accepts the records of one sweep, or of two with the earlier one first, not 3 files",
        ),
        (("none.jsonl", "-o", "r.md"), "none.jsonl"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    before = (folder / "a.jsonl").read_text()
    assert run(monkeypatch, *arguments) == 2
    assert said in capsys.readouterr().err
    assert (folder / "a.jsonl").read_text() == before
    assert not (folder / "r.md").exists()
