"""What a known error has to have, and how one that is out of date is found out."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from exportlab.errors import STAGES, KnownError, get, load_known_errors, recognise, reproduce, verify_fix
from exportlab.errors.known import ANY_NUMBERS, WAYS, OutOfDate, candidates, smallest_change
from exportlab.messages import quiet

MESSAGES = list(csv.DictReader(Path(__file__).with_name("messages.csv").open(encoding="utf-8", newline="")))
ERRORS = pytest.mark.parametrize("error", load_known_errors(), ids=lambda error: error.name)


@pytest.mark.parametrize("name", ["branch_on_value", "same_tensor_twice", "bfloat16_matmul"])
def test_an_error_happens_and_its_fixes_fix_it(name: str) -> None:
    quiet()
    assert recognise(reproduce(get(name)).message)[0] is get(name)
    for fix in get(name).fixes:
        verify_fix(fix)


@ERRORS
def test_an_error_says_what_a_reader_needs(error: KnownError) -> None:
    assert error.stage in STAGES
    assert error.title
    assert len(error.why) > 80
    assert error.fixes
    assert all(fix.way in WAYS and 0 < len(fix.name) <= 100 for fix in error.fixes)
    assert len({fix.name for fix in error.fixes}) == len(error.fixes)
    assert [fix.way for fix in error.fixes] == sorted((fix.way for fix in error.fixes), key=WAYS.index)
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for thread in error.threads)
    assert bool(error.check) == (error.stage == "silent")
    assert error.kin or not error.advice
    assert "\n" not in error.advice


def test_titles_differ() -> None:
    assert len({error.title for error in load_known_errors()}) == len(load_known_errors())


@pytest.mark.parametrize("row", MESSAGES, ids=lambda row: row["message"][:60])
def test_a_message_leads_to_its_page_alone(row: dict[str, str]) -> None:
    assert [error.name for error in recognise(row["message"])][:1] == row["certain"].split()
    assert set(row["candidates"].split()) <= {error.name for error in candidates(row["message"])[:5]}


def test_what_the_numbers_are_is_no_message() -> None:
    """Many defects make the same numbers: only the operator that makes them tells an error from others."""
    said = "export inputs: output[0, 1]: inf where eager has 1.5 (1 of 12 elements differ)"
    assert recognise(said) == []
    assert [error.name for error in recognise(said, "aten.logaddexp.default")] == ["log_add_exp"]


def test_each_silent_error_is_known_by_its_operator_or_has_a_check_of_its_own() -> None:
    unsure = [error for error in load_known_errors() if not error.op and ANY_NUMBERS.match(error.message.lstrip("^"))]
    assert all(error.stage == "silent" for error in unsure)


def test_a_while_gets_no_advice_for_a_branch() -> None:
    message = "Could not guard on data-dependent expression u0 > 1 (unhinted: u0 > 1)"
    assert "while_loop" in smallest_change(message, code="while left.numel() > 1:")
    assert "torch.cond" in smallest_change(message, code="if left.numel() > 1:")


@pytest.mark.parametrize("message", ["Constraints violated (batch)!", '"h" was asked to be dynamic but is the constant 6 after model.py:9'])
def test_a_size_that_became_a_constant_gets_no_advice_for_a_branch(message: str) -> None:
    assert "x.shape[0] in place of the number" in smallest_change(message)


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
        reproduce(broken)


def test_another_message_is_found_out() -> None:
    with pytest.raises(OutOfDate, match="the message is another"):
        reproduce(KnownError("capture", "no such message", get("branch_on_value").breaks, ()))
