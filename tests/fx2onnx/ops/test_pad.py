"""Padding in every mode: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import INF, OWN, count, normal
from modules import Op
from operators import check, check_both
from torch import nn

from exportlab import verify
from fx2onnx import to_onnx

X, IMAGE = normal(4, 6), normal(1, 2, 4, 5)

PADS = {
    "numbers": (lambda a: (F.pad(a, (1, 2)), F.pad(a, (1, -2, -1, 3), value=2.5), F.pad(a, (0, 0)), F.pad(a, (0, a.shape[0] - 3))), X),
    "to a multiple": (lambda a: F.pad(a, (0, -a.shape[0] % 4)), X),
    "integers": (lambda a: (F.pad(a, (1, 1), value=1), F.pad(a.int(), (1, 1)), F.pad(a > 1, (1, 1), value=True)), count(3)),
    "float16": (lambda a: F.pad(a.half(), (1, 1), value=-INF), X),
    "between two transposes": (lambda a: (F.pad(a.T, (0, 2)).T, F.pad(a.T[None], (1, 0)).squeeze(0).T), X),
    "nothing": (lambda a: F.pad(a, (1, 1)), torch.zeros(0)),
    "reflect": (lambda a: (F.pad(a, (1, 2, 2, 1), "reflect"), F.pad(a, (-1, 2, 0, 0), "reflect")), IMAGE),
    "replicate": (lambda a: (F.pad(a, (2, 1, 5, 0), "replicate"), F.pad(a, (1, -1, -2, 1), "replicate")), IMAGE),
    "replicate cut off": (lambda a: F.pad(a, (-a.shape[-1], 5, 0, 0), "replicate"), IMAGE),
    "circular of nothing": (lambda a: F.pad(a, (2, 1), "circular"), torch.zeros(0, 3, 3)),
    "circular": (lambda a: (F.pad(a, (2, 1), "circular"), F.pad(a, (5, 5), "circular")), IMAGE[0]),
    "three axes": (lambda a: (F.pad(a, (1,) * 6, "reflect"), F.pad(a, (1,) * 6, "replicate")), normal(1, 2, 3, 4, 5)),
}


@pytest.mark.parametrize("name", PADS)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*PADS[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ["circular", "reflect"])
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*PADS[name], dynamic=True, options={"opset_version": opset, **OWN})


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.lists(st.integers(-2, 3), min_size=4, max_size=4), st.sampled_from(["constant", "reflect", "replicate"]))
def test_any_padding_is_right(widths: list[int], mode: str) -> None:
    check(lambda x: F.pad(x, widths, mode), normal(1, 1, 6, 7), options=OWN)


@pytest.mark.parametrize(("first", "side"), [(True, "right"), (False, "right"), (True, "left")])
def test_rows_of_lengths_that_values_say_are_padded_to_the_longest(first: bool, side: str) -> None:
    def padded(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        rows = [row[:length] for row, length in zip(x, lengths.tolist(), strict=True)]
        return nn.utils.rnn.pad_sequence(rows, batch_first=first, padding_value=-1.0, padding_side=side)

    module, lengths = Op(padded), torch.tensor([1, 4, 0])
    program = to_onnx(module, (normal(3, 6, 2), lengths), dynamic_shapes=(({1: "width"}, {}),), fallback=False)
    samples = [(normal(3, 6, 2), lengths), (normal(3, 9, 2), torch.tensor([7, 7, 2])), (normal(3, 1, 2), lengths * 0)]
    verify(program, module, samples).check()
