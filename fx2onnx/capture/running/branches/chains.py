"""Tests of a moving size that one line makes again and again, as a `while` does: whether a file can have all their sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil

import sympy

from ...dynamic_shapes import OpenTest, range_text
from ..refusal import TooManyRanges
from ..sample import LONGEST_AT_ANY_COST, Axes, Setting, longest
from ..unify import Arguments
from .paths import BRANCHES, OFTEN

MOST_TESTS = BRANCHES // 2  # of one line: with each, both the sizes before it and those on its sides are looked at
SHOWN = 3
READABLE = 80  # characters of a test that is shown behind the first
NEARER = 3  # turns further, where it is run before


def check_chain(
    asked: OpenTest, axes: Axes, arguments: Arguments, noted: Callable[[Axes, Arguments], Iterable[OpenTest]], reached: Setting
) -> None:
    """Refuse tests of one line that tell more ranges apart than a file may have, before each range is captured for itself.

    It is run at the example's sizes and, where the line asks often, far from them, where a loop has more turns.

    Args:
        asked: one of these tests.
        axes: as they are before any test of a size.
        noted: returns what comes out another way at other sizes, of a run at the example's sizes of some axes.
        reached: the sizes at which the line was asked once more.

    Raises:
        TooManyRanges: there are so many.
    """
    if len(asked.test.free_symbols) > 1:
        return
    (symbol,) = asked.test.free_symbols

    def chain_at(size: int) -> list[OpenTest]:
        found = noted(*axes.elsewhere(symbol, size, arguments))
        chain = _open_after_each_other([test for test in found if test.line == asked.line], axes)
        if len(chain) > MOST_TESTS:
            raise _refusal(chain)
        return chain

    chain = max((chain_at(size) for size in dict.fromkeys((axes.example[symbol], reached[symbol]))), key=len)
    for size in _far(chain, symbol, axes) if len(chain) >= OFTEN else ():
        chain_at(size)


def _refusal(chain: Sequence[OpenTest]) -> TooManyRanges:
    texts = [range_text(test.dims, test.test).removeprefix("only ") for test in chain[:SHOWN]]
    told = ", ".join([texts[0], *(text for text in texts[1:] if len(text) < READABLE)])
    return TooManyRanges(
        f'"{chain[0].names[0]}" was asked to be dynamic but the test at {chain[0].line} is evaluated in each iteration of a loop: '
        f"{told}, and so on. This makes more than {BRANCHES} ranges of sizes. "
        "Use a fixed number of iterations, enough for the longest input, and mask those that are not needed; "
        "or loop over `range(n)` or over rows, which is exported as a Loop."
    )


def _open_after_each_other(tests: Sequence[OpenTest], axes: Axes) -> list[OpenTest]:
    """Those of one size of which each may come out another way when the ones before it have come out as they did."""
    found: list[OpenTest] = []
    for test in tests:
        if len(test.test.free_symbols) == 1 and _may_fail(test.test, axes):
            found.append(test)
            axes = replace(axes, conditions=(*axes.conditions, test.test))
    return found


def _may_fail(test: sympy.Basic, axes: Axes) -> bool:
    (symbol,) = test.free_symbols
    otherwise = replace(axes, conditions=(*axes.conditions, sympy.Not(test))).allowed(symbol)
    return bool(otherwise) and otherwise[0] <= longest()


def _far(chain: Sequence[OpenTest], symbol: sympy.Symbol, axes: Axes) -> Iterator[int]:
    """Sizes at which a loop that goes on as it began makes one test more than a file may have, if sizes reach so far; and the least.

    A nearer one comes first: a function that calls itself on both halves is refused there; at the far one it makes a thousand calls.
    """
    begins = sorted({replace(axes, conditions=(test.test,)).allowed(symbol)[0] for test in chain})
    least, most = axes.ranges[symbol][0], min(axes.ranges[symbol][1], LONGEST_AT_ANY_COST)
    if len(begins) > 1:
        missing = MOST_TESTS + 2 - len(begins)
        turns = sorted({min(NEARER, missing), missing})
        yield from dict.fromkeys(min(ceil(begins[-1] * (begins[-1] / begins[-2]) ** n), most) for n in turns)
    yield least
