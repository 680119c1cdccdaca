"""What docs/to_onnx_design.md says of both captures stands in the stored tables, and a handful of their rows come out so again."""

from __future__ import annotations

import csv
from collections import Counter

import pytest
from compare_captures import COUNTS, KINDS, NEVER, ROOT, SETS, Case, Row, cases, compare_case, differs, kind_of, read, sentences

LISTED = read()
AGAIN = [
    Case("zoo", "branch_on_value", "moving"),
    Case("zoo", "input_added_to", "static"),
    Case("zoo", "index_update", "moving"),
    Case("op_db float32", "diagonal#0", "moving"),
]
EQUAL = [Case("zoo", "mlp", "moving"), Case("zoo", "conv_relu", "static"), Case("op_db float32", "addmm#0", "moving")]


def counted() -> list[dict[str, str]]:
    with COUNTS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_no_run_is_wrong_or_ends_in_an_error_of_its_own() -> None:
    assert [row for row in LISTED if row.run in NEVER] == []


def test_the_list_has_differences_alone_each_once_and_with_its_reason() -> None:
    assert all(differs(row) and row.why and row.set in SETS for row in LISTED)
    assert len({(row.set, row.case, row.mode) for row in LISTED}) == len(LISTED)


def test_the_counts_are_those_of_the_list() -> None:
    found = Counter((row.set, row.mode, kind_of(row)) for row in LISTED)
    *table, total = counted()
    for row in table:
        for kind in KINDS:
            listed = found[row["set"], row["mode"], kind]
            assert listed <= int(row[kind]) if kind == "neither" else listed == (int(row[kind]) if kind != "equal" else 0), (row, kind)
    assert all(int(total[kind]) == sum(int(row[kind]) for row in table) for kind in KINDS)


def test_the_page_says_what_is_counted() -> None:
    page = " ".join((ROOT / "docs/to_onnx_design.md").read_text(encoding="utf-8").split())
    assert [sentence for sentence in sentences(counted()[-1], LISTED) if sentence not in page] == []


def test_every_case_that_is_listed_is_one() -> None:
    assert {Case(row.set, row.case, row.mode) for row in LISTED} <= set(cases(SETS))


@pytest.mark.parametrize("case", AGAIN, ids=lambda case: f"{case.case} {case.mode}")
def test_a_difference_comes_out_again(case: Case) -> None:
    stored = next(row for row in LISTED if Case(row.set, row.case, row.mode) == case)
    again = compare_case(case)
    assert again is not None
    assert (again.run, again.torch_export, again.graphs) == (stored.run, stored.torch_export, stored.graphs)
    assert again.why == stored.why or not stored.graphs


@pytest.mark.parametrize("case", EQUAL, ids=lambda case: f"{case.case} {case.mode}")
def test_what_is_not_listed_has_equal_graphs(case: Case) -> None:
    assert case not in {Case(row.set, row.case, row.mode) for row in LISTED}
    assert compare_case(case) == Row(case.set, case.case, case.mode, "ok", "ok", "equal", "")
