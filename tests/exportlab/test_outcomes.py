"""The words for what became of an export: their order, and that each has a grade, a colour and a sign."""

from __future__ import annotations

import json
import re

import pytest

from exportlab.outcomes import Outcome


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
