"""Every case that `to_onnx` does not get right at moving sizes is listed in docs/converter.md, with the reason."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from expected import EXPECTED, from_csv, moving  # noqa: E402

LISTED = ROOT / "docs/data/refused.csv"
KINDS = {"no file can", "ask for it", "not done yet"}


def rows() -> list[dict[str, str]]:
    """The table as the page shows it."""
    with LISTED.open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_reason_is_a_sentence_of_a_known_kind() -> None:
    for row in rows():
        assert set(row) == {"case", "kind", "why"}
        assert row["kind"] in KINDS
        assert row["why"].endswith(".")
        assert len(row["why"]) > 30


def test_the_list_is_that_of_the_cases_that_are_not_right() -> None:
    found = moving(from_csv(EXPECTED.read_text()))
    not_right = {case for (case, exporter, _), outcome in found.items() if exporter == "to_onnx" and outcome != "ok"}
    listed = [row["case"] for row in rows()]
    assert len(listed) == len(set(listed))
    assert not_right - set(listed) == set(), "no reason is given"
    assert set(listed) - not_right == set(), "these are right, or no cases"
