"""An order among equal elements that torch does not define is not held against a file; any other order is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_verify import Module, Pretender
from torch import Tensor, nn

from exportlab import Sample, to_onnx, verify
from exportlab.outcomes import Outcome
from exportlab.verification.ties import WORDS, InOrder, apart_in_order

FEW_NUMBERS = torch.arange(200) % 3
SORTS: dict[str, Callable[[Tensor], Any]] = {
    "sort": lambda x: x.sort().indices,
    "sort, the greatest first": lambda x: x.sort(descending=True).indices,
    "argsort": lambda x: x.argsort(),
    "argsort, any order": lambda x: x.argsort(stable=False),
    "topk": lambda x: x.topk(50).indices,
    "topk, the least": lambda x: x.topk(50, largest=False).indices,
}


@pytest.mark.parametrize("name", SORTS)
def test_equal_elements_stay_in_their_order(name: str) -> None:
    with InOrder():
        found = SORTS[name](FEW_NUMBERS)
    kept = FEW_NUMBERS[found].diff() == 0
    assert (found.diff()[kept] > 0).all()


@pytest.mark.parametrize("name", SORTS)
def test_a_file_that_keeps_the_order_is_right(name: str) -> None:
    module = Module(SORTS[name])
    assert verify(to_onnx(module, (FEW_NUMBERS,)), module, [(FEW_NUMBERS,)]).outcome is Outcome.OK


def test_another_order_than_either_is_wrong() -> None:
    report = verify(Pretender(lambda x: x.sort(stable=True).indices.flip(0)), Module(SORTS["sort"]), [(FEW_NUMBERS,)])
    assert report.outcome is Outcome.WRONG


def test_that_an_order_is_all_is_told_once_for_each_check() -> None:
    module = Module(SORTS["topk"])
    told = [check for check in verify(to_onnx(module, (FEW_NUMBERS,)), module, [(FEW_NUMBERS,)]).checks if check.detail == WORDS]
    assert told
    assert {check.outcome for check in told} == {Outcome.OK}


def test_nothing_is_excused_where_nothing_is_sorted_or_eager_cannot_be_watched() -> None:
    def unwatched(x: Tensor) -> Tensor:
        if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
            raise RuntimeError("watched")
        return x

    calls = [Sample((FEW_NUMBERS,))]
    assert apart_in_order(Module(lambda x: x), calls, FEW_NUMBERS, None) is None
    assert apart_in_order(Module(unwatched), calls, FEW_NUMBERS, None) is None


class Best(nn.Module):
    """The places of the best ten scores that are above a threshold: which of equal scores are among them decides how many remain."""

    def forward(self, scores: Tensor, sizes: Tensor) -> Tensor:
        best = ((scores * 4).round() / 4).topk(10).indices
        return best[sizes[best] > 0.5]


@pytest.mark.parametrize("seed", range(6))
def test_a_shape_that_the_order_of_equals_decides_is_right(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    samples = [(torch.rand(n, generator=generator), torch.rand(n, generator=generator)) for n in (60, 90)]
    program = to_onnx(Best(), samples[0], dynamic_shapes=({0: "n"}, {0: "n"}))
    assert verify(program, Best(), samples).outcome is Outcome.OK


def test_another_shape_than_either_is_wrong() -> None:
    generator = torch.Generator().manual_seed(0)
    samples = [(torch.rand(60, generator=generator), torch.rand(60, generator=generator))]
    assert verify(Pretender(lambda scores, sizes: Best()(scores, sizes)[1:]), Best(), samples).outcome is Outcome.WRONG
