"""Detect lines that test a dynamic size repeatedly, as a `while` does, and refuse those that need too many ranges."""

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

MOST_TESTS = BRANCHES // 2  # at one line; each test adds the sizes before it and those of its branches
SHOWN = 3
READABLE = 80  # the longest of the further tests to show
NEARER = 3  # further iterations, for a cheaper first run


def check_chain(
    guard: OpenGuard,
    axes: SizeDomain,
    arguments: Arguments,
    find_guards: Callable[[SizeDomain, Arguments], Iterable[OpenGuard]],
    reached: SizeAssignment,
) -> None:
    """Refuse the tests of one line if they need too many ranges, before each range is captured separately.

    The model runs at the example's sizes and, if the line tests often, far from them, where a loop has more iterations.

    Args:
        guard: one of these tests.
        axes: the domain before any guard.
        find_guards: returns the undecided guards of a run at the example's sizes of a domain.
        reached: the sizes at which the line made a further test.

    Raises:
        UnboundedGuardChain: If there are too many.
    """
    if len(guard.test.free_symbols) > 1:
        return
    (symbol,) = guard.test.free_symbols

    def chain_at(size: int) -> list[OpenGuard]:
        found = find_guards(*axes.replace_example(symbol, size, arguments))
        chain = _open_after_each_other([test for test in found if test.line == guard.line], axes)
        if len(chain) > MOST_TESTS:
            raise _refusal(chain)
        return chain

    chain = max((chain_at(size) for size in dict.fromkeys((axes.example[symbol], reached[symbol]))), key=len)
    for size in _far(chain, symbol, axes) if len(chain) >= OFTEN else ():
        chain_at(size)


def _refusal(chain: Sequence[OpenGuard]) -> UnboundedGuardChain:
    texts = [range_text(test.dims, test.test).removeprefix("only ") for test in chain[:SHOWN]]
    listed = ", ".join([texts[0], *(text for text in texts[1:] if len(text) < READABLE)])
    return UnboundedGuardChain(
        f'"{chain[0].names[0]}" was asked to be dynamic but the test at {chain[0].line} is evaluated in each iteration of a loop: '
        f"{listed}, and so on. This makes more than {BRANCHES} ranges of sizes. "
        "Use a fixed number of iterations, enough for the longest input, and mask those that are not needed; "
        "or loop over `range(n)` or over rows, which is exported as a Loop."
    )


def _open_after_each_other(tests: Sequence[OpenGuard], axes: SizeDomain) -> list[OpenGuard]:
    """The tests of one size that may each have another outcome after the earlier ones had theirs."""
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
    """Sizes at which a loop would make one test too many if it continues at this rate, limited by the range; and the smallest size.

    A nearer one comes first: it suffices to refuse a function that calls itself on both halves, which makes a thousand calls far out.
    """
    begins = sorted({replace(axes, conditions=(test.test,)).candidates(symbol)[0] for test in chain})
    least, most = axes.ranges[symbol][0], min(axes.ranges[symbol][1], MAX_TRACED_SIZE_WITH_VALUES)
    if len(begins) > 1:
        missing = MOST_TESTS + 2 - len(begins)
        turns = sorted({min(NEARER, missing), missing})
        yield from dict.fromkeys(min(ceil(begins[-1] * (begins[-1] / begins[-2]) ** n), most) for n in turns)
    yield least
