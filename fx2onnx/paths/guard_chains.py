"""Tests of a moving size that one line makes again and again, as a `while` does: whether a file can have all their sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil

import sympy

from ..guards.dynamic_shapes import OpenGuard, range_text
from ..structure.paths_of_values import BRANCHES, OFTEN
from ..trace.events import Arguments
from ..trace.refusal import UnboundedGuardChain
from ..trace.size_domain import MAX_TRACED_SIZE_WITH_VALUES, SizeAssignment, SizeDomain, max_traced_size

MOST_TESTS = BRANCHES // 2  # of one line: with each, both the sizes before it and those on its sides are looked at
SHOWN = 3
READABLE = 80  # characters of a test that is shown behind the first
NEARER = 3  # turns further, where it is run before


def check_chain(
    asked: OpenGuard,
    axes: SizeDomain,
    arguments: Arguments,
    noted: Callable[[SizeDomain, Arguments], Iterable[OpenGuard]],
    reached: SizeAssignment,
) -> None:
    """Refuse tests of one line that tell more ranges apart than a file may have, before each range is captured for itself.

    It is run at the example's sizes and, where the line asks often, far from them, where a loop has more turns.

    Args:
        asked: one of these tests.
        axes: as they are before any test of a size.
        noted: returns what comes out another way at other sizes, of a run at the example's sizes of some axes.
        reached: the sizes at which the line was asked once more.

    Raises:
        UnboundedGuardChain: there are so many.
    """
    if len(asked.test.free_symbols) > 1:
        return
    (symbol,) = asked.test.free_symbols

    def chain_at(size: int) -> list[OpenGuard]:
        found = noted(*axes.replace_example(symbol, size, arguments))
        chain = _open_after_each_other([test for test in found if test.line == asked.line], axes)
        if len(chain) > MOST_TESTS:
            raise _refusal(chain)
        return chain

    chain = max((chain_at(size) for size in dict.fromkeys((axes.example[symbol], reached[symbol]))), key=len)
    for size in _far(chain, symbol, axes) if len(chain) >= OFTEN else ():
        chain_at(size)


def _refusal(chain: Sequence[OpenGuard]) -> UnboundedGuardChain:
    texts = [range_text(test.dims, test.test).removeprefix("only ") for test in chain[:SHOWN]]
    told = ", ".join([texts[0], *(text for text in texts[1:] if len(text) < READABLE)])
    return UnboundedGuardChain(
        f'"{chain[0].names[0]}" was asked to be dynamic but the test at {chain[0].line} is evaluated in each iteration of a loop: '
        f"{told}, and so on. This makes more than {BRANCHES} ranges of sizes. "
        "Use a fixed number of iterations, enough for the longest input, and mask those that are not needed; "
        "or loop over `range(n)` or over rows, which is exported as a Loop."
    )


def _open_after_each_other(tests: Sequence[OpenGuard], axes: SizeDomain) -> list[OpenGuard]:
    """Those of one size of which each may come out another way when the ones before it have come out as they did."""
    found: list[OpenGuard] = []
    for test in tests:
        if len(test.test.free_symbols) == 1 and _may_fail(test.test, axes):
            found.append(test)
            axes = replace(axes, conditions=(*axes.conditions, test.test))
    return found


def _may_fail(test: sympy.Basic, axes: SizeDomain) -> bool:
    (symbol,) = test.free_symbols
    otherwise = replace(axes, conditions=(*axes.conditions, sympy.Not(test))).candidates(symbol)
    return bool(otherwise) and otherwise[0] <= max_traced_size()


def _far(chain: Sequence[OpenGuard], symbol: sympy.Symbol, axes: SizeDomain) -> Iterator[int]:
    """Sizes at which a loop that goes on as it began makes one test more than a file may have, if sizes reach so far; and the least.

    A nearer one comes first: a function that calls itself on both halves is refused there; at the far one it makes a thousand calls.
    """
    begins = sorted({replace(axes, conditions=(test.test,)).candidates(symbol)[0] for test in chain})
    least, most = axes.ranges[symbol][0], min(axes.ranges[symbol][1], MAX_TRACED_SIZE_WITH_VALUES)
    if len(begins) > 1:
        missing = MOST_TESTS + 2 - len(begins)
        turns = sorted({min(NEARER, missing), missing})
        yield from dict.fromkeys(min(ceil(begins[-1] * (begins[-1] / begins[-2]) ** n), most) for n in turns)
    yield least
