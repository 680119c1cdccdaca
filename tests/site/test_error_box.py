"""The box for errors on 40 messages as people quote them in public threads. Not here: its scripts in a browser (tools/check_search.py)."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import error_box
import pytest
from known_errors import page_of

from exportlab.errors import recognise, registered

QUOTES = list(csv.DictReader(Path(__file__).with_name("quotes.csv").open(encoding="utf-8", newline="")))


@pytest.fixture(scope="module")
def index() -> dict[str, Any]:
    if not all(page_of(error).with_suffix(".txt").exists() for error in registered()):
        pytest.skip("the messages of the errors are stored by make site, and some are not")
    return error_box.index(error_box.entries())


def test_quotes_are_forty_and_name_their_thread() -> None:
    assert len(QUOTES) == 40
    assert all(quote["source"].count("/") == quote["source"].count("#") == 1 for quote in QUOTES)


def test_no_quote_gets_a_wrong_certain_answer() -> None:
    certain = {quote["message"]: [error.name for error in recognise(quote["message"])][:1] for quote in QUOTES}
    assert [quote["message"] for quote in QUOTES if not set(certain[quote["message"]]) <= set(quote["page"].split())] == []


def test_most_quotes_find_their_page_first(index: dict[str, Any]) -> None:
    results = Counter(error_box.judged(quote, index) for quote in QUOTES)
    assert results["certain"] + results["near"] >= 32, results
    assert results["wrong"] == 0


@pytest.mark.parametrize("nonsense", ["how do I bake a cake", "my cat is asleep", "segmentation fault in tensorflow"])
def test_what_is_about_something_else_is_not_near(nonsense: str, index: dict[str, Any]) -> None:
    assert error_box.nearest(nonsense, index)[0][1] < error_box.NEAR


def test_words_are_compared_in_one_spelling() -> None:
    assert error_box.words("Quantise quantized_models GuardOnData /a/b/c.py") == ["quantize", "quantized", "model", "guard", "data"]
