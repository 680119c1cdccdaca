"""Tolerances follow the dtype and the scale of the output; a few very large numbers do not make them wide."""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from exportlab.verification.difference import TOLERANCES, difference_of, distances, scale_of

WORDS = 200_000


def test_a_uniform_answer_for_a_softmax_over_many_words_is_wrong() -> None:
    expected = (torch.randn(WORDS, generator=torch.Generator().manual_seed(0)) / 10).softmax(0)
    uniform = torch.full_like(expected, 1 / WORDS)
    assert difference_of(expected, uniform).problem
    assert not difference_of(expected, uniform, TOLERANCES).problem  # as they stand they are blind to numbers below 1e-5


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1.0, 1e4, 1e9])
def test_tolerances_follow_the_scale(scale: float) -> None:
    expected = torch.randn(1000, generator=torch.Generator().manual_seed(0), dtype=torch.float32) * scale
    noise = torch.randn(1000, generator=torch.Generator().manual_seed(1)) * scale
    assert not difference_of(expected, expected + 2e-6 * noise).problem
    assert difference_of(expected, expected + 1e-3 * noise).problem


def test_a_mask_of_very_large_numbers_hides_nothing() -> None:
    expected = torch.randn(100, generator=torch.Generator().manual_seed(0))
    expected[:50] = torch.finfo(torch.float32).min
    actual = expected.clone()
    actual[99] += 0.01
    assert scale_of(torch.tensor([1.0, 2.0, 1.0, 1e30])) < 10
    assert difference_of(torch.tensor([1.0, 2.0, 1.0, 1e30]), torch.tensor([1.0, 2.0, 1.001, 1e30])).problem
    assert scale_of(torch.zeros(3)) == 0.0
    assert scale_of(torch.tensor([torch.inf, torch.nan, 0.5])) == 0.5


def test_how_many_times_its_tolerance_a_difference_is() -> None:
    one = torch.ones(4)
    assert difference_of(one, one + 3.3e-4).times == pytest.approx(3, rel=0.01)
    assert difference_of(one, one.double()).times == torch.inf


def test_what_a_processor_flushes_to_zero_is_no_difference() -> None:
    smallest = torch.tensor([torch.inf, 0.0, 2.94e-39])
    assert not difference_of(smallest, torch.tensor([torch.inf, 0.0, 0.0])).problem
    assert difference_of(smallest * 10, torch.tensor([torch.inf, 0.0, 0.0])).problem


def test_distances_know_what_is_not_finite_and_what_no_float_holds() -> None:
    nan, inf = torch.nan, torch.inf
    expected, actual = torch.tensor([1.0, nan, nan, inf, inf, inf]), torch.tensor([1.5, nan, 1.0, inf, -inf, 1.0])
    assert distances(expected, actual).tolist() == [0.5, 0.0, inf, 0.0, inf, inf]
    assert distances(torch.tensor([2**60, 7]), torch.tensor([2**60 + 1, 7])).tolist() == [1.0, 0.0]
    assert distances(torch.tensor([3 + 4j]), torch.tensor([0j])).tolist() == [5.0]
    assert distances(torch.tensor([0.1], dtype=torch.float64), torch.tensor([0.1])).item() == pytest.approx(1.5e-9, rel=0.01)


class Keyless(dict[str, torch.Tensor]):
    """What some libraries return: a class that torch was told how to take apart, without a name for each part."""


def test_a_container_without_keys_is_compared_leaf_by_leaf() -> None:
    pytree.register_pytree_node(Keyless, pytree._dict_flatten, lambda values, names: Keyless(zip(names, values, strict=True)))
    try:
        expected, actual = (Keyless(kept=torch.ones(2), other=torch.full((3,), value)) for value in (1.0, 2.0))
        assert not difference_of(expected, expected).problem
        assert difference_of((expected,), (actual,)).problem.startswith("output[0]['other'][0]: 2 where eager has 1")
    finally:
        pytree._deregister_pytree_node(Keyless)
