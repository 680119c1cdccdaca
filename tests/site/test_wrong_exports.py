"""The page of what `to_onnx` got wrong: each fault has a guard that exists, and the counts are those of the list."""

from __future__ import annotations

import ast
import re
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
import support_matrix
import wrong_exports
from swept import RECORDS, cases, sweep_of

ROOT = Path(__file__).parents[2]
ROWS = wrong_exports.faults()


def test_the_list_holds_the_faults_of_the_changelog() -> None:
    assert len(ROWS) >= 40
    assert len({row["wrong"] for row in ROWS}) == len(ROWS)
    assert [row["date"] for row in ROWS] == sorted(row["date"] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row["wrong"][:40] for row in ROWS])
def test_a_fault_has_a_date_a_sentence_a_way_it_was_found_and_a_guard(row: dict[str, str]) -> None:
    assert row.keys() == {"date", "wrong", "found", "guard"}
    assert date.fromisoformat(row["date"])
    assert row["wrong"].endswith(".")
    assert row["found"] in wrong_exports.WAYS
    file, _, name = row["guard"].partition("::")
    assert file.startswith("tests/fx2onnx/")
    assert (ROOT / file).is_file(), f"{file} is no longer there: name the test that guards against this now"
    tests = [node.name for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]
    assert name in tests if name else any(test.startswith("test_") for test in tests)


def test_the_counts_are_those_of_the_list() -> None:
    table = wrong_exports.counts(ROWS)
    counted = {way: int(count) for way, count in re.findall(r"^\| (\w[^|]*) \| (\d+) \|", table, re.MULTILINE)}
    assert counted == Counter(row["found"] for row in ROWS)
    assert f"| **all** | **{len(ROWS)}** |" in table


def test_random_programs_are_counted_by_exporter(tmp_path: Path) -> None:
    path = tmp_path / "hunts.jsonl"
    path.write_text(
        '{"exporters": {"to_onnx": {"right": 198, "refused": 1, "wrong": 1}}}\n{"exporters": {"dynamo": {"right": 9, "wrong": 1}}}\n'
    )
    assert wrong_exports.hunts(path).splitlines()[2:] == ["| `to_onnx` | 200 | 1 | 0.5 % |", "| `torch.onnx.export` | 10 | 1 | 10.0 % |"]


def test_the_page_is_linked_from_the_zero_of_the_heatmap_and_from_the_matrix() -> None:
    drawn = support_matrix.render_heatmap(sweep_of(*RECORDS), cases("mlp"), "docs/")
    assert '<a href="docs/wrong.html" aria-label="0/1, to_onnx: 0 of 1 silently wrong">0/1</a>' in drawn
    assert "{doc}`wrong`" in (ROOT / "docs/support.md").read_text(encoding="utf-8")
