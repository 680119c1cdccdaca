"""When one way of running a model is ahead of another."""

from __future__ import annotations

import math

import pytest

from exportlab.measure.break_even import Way, count, format_seconds, label, when

EAGER = Way(first=2.0, later=0.1)


@pytest.mark.parametrize(
    ("first", "later", "ahead"),
    [
        (1.0, 0.05, (1, math.inf)),  # starts earlier and is faster
        (3.0, 0.05, (22, math.inf)),  # both take 4.0 s for 21 calls
        (1.0, 0.2, (1, 10)),  # both take 3.0 s for 11 calls
        (3.0, 0.2, (0, 0)),
        (2.0, 0.1, (0, 0)),
    ],
)
def test_the_calls_for_which_a_way_is_ahead(first: float, later: float, ahead: tuple[int, float]) -> None:
    way = Way(first, later)
    assert way.ahead(EAGER) == ahead
    for calls in (1, 5, 10, 11, 12, 21, 22, 1000):
        if not math.isclose(way.after(calls), EAGER.after(calls)):
            assert (way.after(calls) < EAGER.after(calls)) == (ahead[0] > 0 and ahead[0] <= calls <= ahead[1])


def test_a_crossing_is_where_both_take_equally_long() -> None:
    crossing = Way(3.0, 0.05).crossing(EAGER)
    assert crossing is not None
    assert Way(3.0, 0.05).after(crossing) == pytest.approx(EAGER.after(crossing))
    assert Way(1.0, 0.05).crossing(EAGER) is None


@pytest.mark.parametrize(
    ("ahead", "said", "written"),
    [
        ((42, math.inf), "after 41 calls", "pays off after 41 calls"),
        ((1638, math.inf), "after 1,600 calls", "pays off after 1,600 calls"),
        ((1, 25531), "until call 26,000", "ahead until call 26,000"),
    ],
)
def test_a_crossing_in_words(ahead: tuple[int, float], said: str, written: str) -> None:
    assert (when(*ahead), label(*ahead, short=False)) == (said, written)


def test_ways_without_a_crossing_in_words() -> None:
    assert when(1, math.inf) == "from the first call"
    assert {when(0, 0), when(2_000_000, math.inf)} == {"not within 1,000,000 calls"}


def test_numbers_of_calls_have_two_digits_and_seconds_are_powers_of_ten() -> None:
    assert [count(calls) for calls in (3, 41, 137, 273_334)] == ["3", "41", "140", "270,000"]
    assert [format_seconds(value, short=False) for value in (0.01, 1, 10_000)] == ["0.01 s", "1 s", "10,000 s"]
    assert format_seconds(10_000, short=True) == "10⁴ s"
