"""The check of common models: what it calls right, and what makes it fail."""

from __future__ import annotations

import numpy as np
import outside
import pytest
import torch
from outside import MODELS, Row, agrees, calls, compare_with_eager, failures, shapes


def row(outcome: str, ours: float = 1.0, theirs: float | None = 4.0) -> Row:
    return Row("Bert", "ids", "name", outcome, ours, theirs)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([row("right"), row("right")], []),
        ([row("right"), row("refused")], ["1 exports are right, and at least 2 should be"]),
        ([row("right"), row("right"), row("wrong")], ["1 exports are wrong"]),
        (
            [row("right", 3.0), row("right", 3.0)],
            ["the exports took 0.75 of torch.export's processor time, and at most 0.5 is allowed"],
        ),
        ([row("right", 9.0, None), row("right")], []),
    ],
)
def test_it_fails_when_too_few_are_right_any_is_wrong_or_it_takes_too_long(rows: list[Row], found: list[str]) -> None:
    assert failures(rows, floor=2, most=0.5) == found


def test_the_exports_number_148() -> None:
    assert sum(2 * len(calls(model.kind, 2, 9)) for model in MODELS) == 148


class Twice(torch.nn.Module):
    """Doubles an image, and returns a tuple as models of transformers do."""

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor]:
        return (pixel_values * 2,)


def test_what_differs_at_another_size_is_wrong_and_what_refuses_it_is_narrow() -> None:
    def frozen(pixel_values: torch.Tensor) -> list[torch.Tensor]:
        return [pixel_values * (2 if len(pixel_values) == 2 else 3)]

    def narrow(pixel_values: torch.Tensor) -> list[torch.Tensor]:
        if len(pixel_values) != 2:
            raise ValueError("two\nrows")
        return [pixel_values * 2]

    assert compare_with_eager(Twice(), Twice(), "image", "image") == ("right", "")
    assert compare_with_eager(frozen, Twice(), "image", "image")[0] == "wrong"
    assert compare_with_eager(narrow, Twice(), "image", "image") == ("narrow", "at 1, 1: ValueError: two rows")


def test_rows_that_are_all_hidden_are_not_compared() -> None:
    want = np.ones((2, 3), np.float32)
    got = np.concatenate([want[:1], want[1:] * 2])
    assert agrees(got, want, np.array([True, False]))
    assert not agrees(got, want, np.array([True, True]))
    assert not agrees(got[:1], want, np.array([True, False]))


def test_dimensions_are_given_both_ways() -> None:
    call, dims = calls("decoder", 2, 9)["mask"], {0: "batch", 1: "length"}
    assert shapes(call, "decoder", by_name=True) == dict.fromkeys(call, dims)
    assert shapes(call, "decoder", by_name=False)["input_ids"] == {0: outside.DYNAMIC, 1: outside.DYNAMIC}
    assert call["attention_mask"].tolist() == [[1] * 9, [0] + [1] * 8]
