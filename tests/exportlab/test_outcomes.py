"""The words for what became of an export: their order, and that each has a grade, a colour and a sign."""

from __future__ import annotations

import json
import re

import pytest

from exportlab.outcomes import CLOSED, Mark, Outcome, mark


def test_the_most_serious_is_the_first_and_silent_ones_come_before_all_others() -> None:
    assert [outcome for outcome in Outcome if outcome.silent] == list(Outcome)[:2] == ["wrong", "frozen"]
    assert Outcome.worst(["ok", "run", "frozen", "capture"]) is Outcome.FROZEN
    assert Outcome.worst([]) is Outcome.OK
    with pytest.raises(ValueError, match="fine"):
        Outcome.worst(["ok", "fine"])


def test_each_is_its_word_and_has_a_grade_a_colour_and_a_sign() -> None:
    for outcome in Outcome:
        assert json.dumps(outcome) == f'"{outcome}"' == json.dumps(outcome.value)
        assert re.fullmatch("#[0-9A-F]{6}", outcome.color)
        assert len(outcome.sign) == 1
    assert {outcome: outcome.grade for outcome in Outcome if outcome.grade != 1} == {"wrong": 2, "frozen": 2, "ok": 0}


@pytest.mark.parametrize(
    ("outcome", "values", "warned", "expected"),
    [
        (Outcome.OK, (), False, Mark.OK),
        (Outcome.NARROW, (), False, Mark.NARROW),
        (Outcome.CAPTURE, (), False, Mark.REFUSED),
        (Outcome.LOAD, (), False, Mark.FAILED),
        (Outcome.WRONG, CLOSED, False, Mark.MASKED),
        (Outcome.FROZEN, ("masks all false",), True, Mark.MASKED),
        (Outcome.WRONG, ("masks all false", "one NaN"), False, Mark.SILENT),
        (Outcome.WRONG, ("",), False, Mark.SILENT),
        (Outcome.FROZEN, ("one NaN",), True, Mark.WARNED),
    ],
)
def test_what_an_export_counts_as(outcome: Outcome, values: tuple[str, ...], warned: bool, expected: Mark) -> None:
    assert mark(outcome, values, warned) is expected


def test_a_file_that_is_right_except_where_a_mask_hides_everything_works_and_has_a_sign_of_its_own() -> None:
    assert [one for one in Mark if one.works] == [Mark.OK, Mark.MASKED]
    assert Mark.MASKED.sign not in {outcome.sign for outcome in Outcome}
    assert Mark.MASKED.meaning == "right except where a mask hides everything"
