"""Names as a reader knows them, and ratios as one says them."""

from __future__ import annotations

import pytest

from exportlab.measure import words
from exportlab.measure.timing import Ratio

SIX, HALF, EQUAL = Ratio((6.0,) * 6), Ratio((0.5,) * 6), Ratio((0.9, 1.1, 1.0, 1.0, 1.0, 1.2))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dynamo", "torch.onnx.export"),
        ("dynamo, optimize=False", "torch.onnx.export with optimize=False"),
        ("to_onnx, one file", "to_onnx with one file"),
        ("Llama(2), one step", "Llama(2), one step"),
        ("eager", "eager"),
    ],
)
def test_an_exporter_has_the_name_that_its_reader_calls_it_by(name: str, said: str) -> None:
    assert words.spoken(name) == said


def test_words_are_listed() -> None:
    assert [words.listed("abc"[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        (
            {"dynamo": SIX, "a": HALF, "to_onnx": EQUAL},
            "torch.onnx.export takes 6.0 times as long as b, a 0.50 times; for to_onnx no difference was seen",
        ),
        ({"a": HALF}, "a takes 0.50 times as long as b"),
        ({"a": EQUAL, "c": EQUAL}, "no difference from b was seen for a and c"),
    ],
)
def test_what_takes_longer_is_said_aloud(ratios: dict[str, Ratio], said: str) -> None:
    assert words.takes(ratios, "b") == said
