"""The box for errors on 40 messages as people quote them in public threads. Not here: its scripts in a browser (tools/check_search.py)."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

import error_box
import pytest
from known_errors import FIXED, page_of
from site_files import ROOT

from exportlab.errors import load_known_errors, recognise
from exportlab.errors.known import candidates

QUOTES = list(csv.DictReader(Path(__file__).with_name("quotes.csv").open(encoding="utf-8", newline="")))


@pytest.fixture(scope="module")
def index() -> dict[str, Any]:
    if not all(page_of(error).with_suffix(".txt").exists() for error in load_known_errors()):
        pytest.skip("the messages of the errors are stored by make site, and some are not")
    return error_box.index(error_box.entries())


def test_quotes_are_forty_and_name_their_thread() -> None:
    assert len(QUOTES) == 40
    assert all(quote["source"].count("/") == quote["source"].count("#") == 1 for quote in QUOTES)


def test_no_quote_gets_a_wrong_certain_answer() -> None:
    certain = {quote["message"]: [error.name for error in recognise(quote["message"])][:1] for quote in QUOTES}
    assert [quote["message"] for quote in QUOTES if not set(certain[quote["message"]]) <= set(quote["page"].split())] == []


@pytest.mark.parametrize(
    "message", ["while running Reshape node. Name:'/Reshape'", "The input tensor cannot be reshaped to the requested shape."]
)
def test_a_reshape_without_its_shapes_may_be_two_errors(message: str) -> None:
    assert recognise(message) == []
    assert {error.name for error in candidates(message)} == {"reshape_of_another_size", "group_norm_of_nothing"}


def test_most_quotes_find_their_page_first(index: dict[str, Any]) -> None:
    results = Counter(error_box.judge_quote(quote, index) for quote in QUOTES)
    assert results["certain"] + results["unsure"] + results["near"] >= 39, results
    assert results["wrong"] == 0


@pytest.mark.parametrize(
    "nonsense", ["how do I bake a cake", "my cat is asleep", "segmentation fault in tensorflow", "the weather in Paris"]
)
def test_what_is_about_something_else_finds_nothing(nonsense: str, index: dict[str, Any]) -> None:
    found = error_box.nearest(nonsense, index)
    assert [page for page, score in found if score >= (error_box.NEAR if "/errors/" in page else error_box.WORTH_READING)] == []


WISHES = {  # what newcomers typed into the box, and a page that fits
    "run on cuda": "bench_your_model",
    "kv cache": "302_language_model_with_cache",
    "streaming GRU with state": "names",
    "my LSTM is wrong": "lstm_exported_twice",
    "export a model with dynamic batch and named outputs": "names",
    "export a hugging face model": "309_patch_a_real_model",
    "I have a save_pretrained folder": "309_patch_a_real_model",
    "export to onnx": "simple_case",
    "dynamic batch": "103_shapes_that_move",
    "custom operator": "202_operators_in_python",
    "run my onnx on gpu": "bench_your_model",
    "how do I name outputs": "names",
    "quantize to int8": "209_eight_bits_or_four",
    "how to export with dynamic batch size": "simple_case",
    "nms": "104_branches_and_loops",
}


@pytest.mark.parametrize("wish", WISHES)
def test_a_wish_finds_a_page_that_fits(wish: str, index: dict[str, Any]) -> None:
    shown = [(Path(page).stem, score) for page, score in error_box.nearest(wish, index)[:3]]
    assert WISHES[wish] in [page for page, score in shown if score >= error_box.WORTH_READING], shown


def test_wishes_lead_to_pages_that_there_are() -> None:
    assert set(error_box.wishes()) <= {entry.page.removesuffix(".html") for entry in error_box.entries()}


def test_messages_that_are_fixed_upstream_have_their_row() -> None:
    rows = (ROOT / "docs/errors.md").read_text(encoding="utf-8").partition("## Fixed upstream")[2]
    assert all(re.search(pattern, rows) for pattern in FIXED)


def test_words_are_compared_in_one_spelling() -> None:
    assert error_box.words("Quantise quantized_models GuardOnData /a/b/c.py") == ["quantize", "quantized", "model", "guard", "data"]
