"""List the ways to write a line of the user's otherwise, the one that changes least first; each is only worth what a trial shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from .paths import Seen
from .rewrite import CannotRewrite, Change, Source, as_cond, checked_in_python
from .rewrite_arms import one_arm
from .rewrite_breaks import filled_at_once, without_break
from .rewrite_calls import as_vmap, with_arguments_copied
from .rewrite_indices import as_index, in_turns, stacked
from .rewrite_loops import comprehended, without_loop
from .rewrite_memo import without_memory
from .rewrite_numbers import as_size, as_tensor, checked, in_integers, of_sizes, picked, uncached, with_classes
from .rewrite_numpy import in_torch
from .rewrite_options import in_float32, unvalidated

Make = Callable[[Source, Sequence[Seen]], Iterator[Change]]


@dataclass(frozen=True)
class Rule:
    """What it does, said to the user, and the changes that it proposes for a line.

    Attributes:
        exact: whether the changed line means the same for every input, so that an export may be held against the changed model itself,
            whose ties and roundings can be told from errors. rounds: the same, but for the rounding of a narrower type.
    """

    what: str
    make: Make
    exact: bool = False
    rounds: bool = False


def _blind(make: Callable[[Source], Iterator[Change]]) -> Make:
    return lambda source, seen: make(source)


def _one(make: Callable[[Source], Change]) -> Make:
    return partial(_single, make)


def _single(make: Callable[[Source], Change], source: Source, seen: Sequence[Seen]) -> Iterator[Change]:
    with suppress(CannotRewrite):
        yield make(source)


RULES = (
    Rule("make the check in Python alone: an export leaves it out", _one(checked_in_python)),
    Rule("write into a copy of the argument, if nobody reads it after the call", _blind(with_arguments_copied)),
    Rule("say how many classes there are; the samples have this many", with_classes),
    Rule("call the function behind the cache: a size that moves is no key", uncached),
    Rule("make it in each call: a size that moves is no key", _blind(without_memory)),
    Rule("keep the size whole: a quotient of integers can be exported, a float cannot", _blind(in_integers)),
    Rule("compute with the size as a tensor", _blind(of_sizes)),
    Rule("take the size of the tensor, which is the same number in every sample", as_size),
    Rule("keep the value a tensor", _blind(as_tensor)),
    Rule("keep the index a tensor", _blind(as_index), exact=True),
    Rule("take the indices one by one", in_turns, exact=True),
    Rule("stack the tensors", stacked, exact=True),
    Rule("leave out the check of the values, which asks for them", unvalidated),
    Rule("compute in float32: the results differ by the rounding of the narrower type", _blind(in_float32), exact=True, rounds=True),
    Rule("compute all of them, and pick by a tensor", _blind(picked)),
    Rule("do it to all values at once", _blind(comprehended)),
    Rule("do without the loop", _blind(without_loop)),
    Rule("compare numbers of rows and columns, instead of filling row by row", _blind(filled_at_once)),
    Rule("compute every turn, and keep what was there at the end", _blind(without_break)),
    Rule("map over the rows", _one(as_vmap)),
    Rule("compute in torch instead of numpy", _blind(in_torch)),
    Rule("do without the test: every sample gives the same without it", _blind(one_arm)),
    Rule("make a torch.cond of the branch: both arms are in the file", _one(as_cond)),
    Rule("tell the capture what the number can be", _blind(checked)),
)


def proposed(source: Source, seen: Sequence[Seen]) -> Iterator[tuple[Rule, Change]]:
    """Yield each change that a rule makes, and the rule."""
    for rule in RULES:
        changes = rule.make(source, seen)
        while True:
            try:
                yield rule, next(changes)
            except StopIteration:
                break
            except Exception:  # noqa: BLE001 - a rule that meets what it does not know proposes nothing
                break
