"""What a known error has to have, and how one that is out of date is found out."""

from __future__ import annotations

import re

import pytest

from exportlab.errors import STAGES, KnownError, fixed, get, recognise, registered, reproduced
from exportlab.errors.known import WAYS, OutOfDate, smallest_change
from exportlab.messages import quiet

ERRORS = pytest.mark.parametrize("error", registered(), ids=lambda error: error.name)


@pytest.mark.parametrize("name", ["branch_on_value", "same_tensor_twice", "bfloat16_matmul"])
def test_an_error_happens_and_its_fixes_fix_it(name: str) -> None:
    quiet()
    assert recognise(reproduced(get(name)).message)[0] is get(name)
    for fix in get(name).fixes:
        fixed(fix)


@ERRORS
def test_an_error_says_what_a_reader_needs(error: KnownError) -> None:
    assert error.stage in STAGES
    assert error.title
    assert len(error.why) > 80
    assert error.fixes
    assert all(fix.way in WAYS and fix.doc for fix in error.fixes)
    assert [fix.way for fix in error.fixes] == sorted((fix.way for fix in error.fixes), key=WAYS.index)
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for thread in error.threads)
    assert bool(error.check) == (error.stage == "silent")
    assert bool(error.kin) == bool(error.advice)
    assert "\n" not in error.advice


def test_a_message_that_no_error_has_gets_the_advice_of_its_kin() -> None:
    message = "RuntimeError: Cannot view a tensor that is not contiguous"
    assert recognise(message) == []
    assert smallest_change(message) == "write .reshape(…) for .view(…), or make the tensor .contiguous() before"
    assert smallest_change(message, get("same_tensor_twice")) == get("same_tensor_twice").fixes[0].line
    assert smallest_change("no such message") == ""


def test_an_error_that_is_fixed_upstream_is_found_out() -> None:
    healthy = get("branch_on_value").fixes[0].make
    broken = KnownError("capture", "data-dependent", healthy, ())
    with pytest.raises(OutOfDate, match="does not fail any more"):
        reproduced(broken)


def test_another_message_is_found_out() -> None:
    with pytest.raises(OutOfDate, match="the message is another"):
        reproduced(KnownError("capture", "no such message", get("branch_on_value").breaks, ()))
