"""Times that can be compared: taken in interleaved rounds, read as paired ratios."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from ..checks import must_be, must_be_whole

Group = TypeVar("Group", bound=Hashable)
Taken = TypeVar("Taken")
Round = Mapping[str, float]
Make = Callable[[], Callable[[], object]]

STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}  # how many standard errors 95 % lie within, by the number of rounds


@dataclass(frozen=True)
class Ratio:
    """Quotients of seconds; prints as their median with its interval, or says that no difference was seen: the interval holds 1."""

    seen: tuple[float, ...]

    @property
    def median(self) -> float:
        """The quotient in the middle."""
        return statistics.median(self.seen)

    @property
    def low(self) -> float:
        """The lowest."""
        return min(self.seen)

    @property
    def high(self) -> float:
        """The highest."""
        return max(self.seen)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the quotient lies as far as so many rounds can tell: the lowest and the highest, which chance puts on one side of 1
        less than 1 time in 20 for equals if there are six of them: 2 / 2⁶. Of fewer, Student's interval of the mean logarithm as well.
        """
        if len(self.seen) not in STUDENT or self.low <= 0:  # counts may be none
            return self.low, self.high
        logs = [math.log(quotient) for quotient in self.seen]
        middle, reach = statistics.mean(logs), STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
        return min(self.low, math.exp(middle - reach)), max(self.high, math.exp(middle + reach))

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1; nothing else decides, on any page, that a difference was seen."""
        low, high = self.interval
        return not low <= 1 <= high

    def __str__(self) -> str:
        low, high = (rounded(end) for end in self.interval)
        return f"{rounded(self.median)}x ({low}–{high})" if self.differs else f"no difference seen ({low}–{high})"


@dataclass(frozen=True)
class Timings:
    """Seconds by name, one mapping a round; the first rounds, discarded, are kept apart."""

    discarded: tuple[Round, ...]
    rounds: tuple[Round, ...]

    def each(self, calls: int) -> Timings:
        """Return the seconds of one call, where so many were timed together."""
        kept = (tuple({name: seconds / calls for name, seconds in one.items()} for one in part) for part in (self.discarded, self.rounds))
        return Timings(*kept)

    def of(self, name: str) -> tuple[float, ...]:
        """Return the seconds of one name, round by round."""
        return tuple(seconds[name] for seconds in self.rounds)

    def median(self, name: str) -> float:
        """Return the seconds of one name in its middle round."""
        return statistics.median(self.of(name))

    def ratio(self, name: str, base: str) -> Ratio:
        """Return the seconds of `name` over those of `base`, paired: both of the same round."""
        return Ratio(tuple(seconds[name] / seconds[base] for seconds in self.rounds))

    def growth(self, name: str, start: Timings) -> Ratio:
        """Return the seconds of `name` over those that it took in `start`, paired likewise: both were measured in the same rounds."""
        return Ratio(tuple(now / then for now, then in zip(self.of(name), start.of(name), strict=True)))


def summed(timings: Iterable[Timings], names: Sequence[str]) -> Timings:
    """Return the seconds of several groups added up, round by round: a group that takes longer counts for more."""
    added = list(timings)
    rounds = zip(*(timing.rounds for timing in added), strict=True)
    return Timings((), tuple({name: sum(seconds[name] for seconds in together) for name in names} for together in rounds))


def interleaved(
    groups: Mapping[Group, Mapping[str, Make]],
    rounds: int,
    *,
    discard: int = 1,
    budget: float = math.inf,
    least: int = 3,
    tell: Callable[[str], None] = lambda line: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Group, Timings]:
    """Time what every maker of every group makes, once a round; each round begins a group with its next name, so none is always first.

    Args:
        groups: what is to be compared stands in one group, and is timed close together: by name, a function that prepares one
            call and returns it. Only the call is timed.
        discard: rounds before the first that counts.
        budget: seconds after which no further round begins, provided that `least` rounds counted.
        tell: takes a line after each round.

    Raises:
        TypeError, ValueError: an argument cannot be used: the message names it.
    """
    must_be(Mapping, groups=groups)
    for group, makers in groups.items():
        must_be(Mapping, **{f"groups[{group!r}]": makers})
        if not makers or not all(map(callable, makers.values())):
            raise TypeError(f"groups[{group!r}] must hold functions, at least one")
    must_be_whole(0, rounds=rounds, discard=discard, least=least)
    must_be(float, int, budget=budget)
    done: list[dict[Group, Round]] = []
    start = clock()
    with frozen():
        while len(done) < discard + rounds and (len(done) < discard + least or clock() - start < budget):
            done.append({group: one_round(makers, len(done), clock) for group, makers in groups.items()})
            tell(f"round {len(done)} of {discard + rounds}, {clock() - start:.0f} s")
    taken = {group: tuple(seen[group] for seen in done) for group in groups}
    return {group: Timings(seen[:discard], seen[discard:]) for group, seen in taken.items()}


def one_round(makers: Mapping[str, Make], first: int, clock: Callable[[], float] = time.perf_counter) -> Round:
    """Return the seconds of each maker's call, beginning with the `first`, counted around."""
    return by_turns(makers, first, lambda name: seconds(makers[name], clock))


def by_turns(names: Iterable[str], first: int, take: Callable[[str], Taken]) -> dict[str, Taken]:
    """Return what `take` gives for each name, in their order; it is called for the `first`, counted around, before the others."""
    ordered = list(names)
    begin = first % len(ordered)
    taken = {name: take(name) for name in ordered[begin:] + ordered[:begin]}
    return {name: taken[name] for name in ordered}


@contextmanager
def frozen() -> Iterator[None]:
    """Keep the garbage collector from what is alive now; it still collects what the block leaves. What a fork froze stays so."""
    was_frozen = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


def seconds(make: Make, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return how long one call takes; it is prepared, and the garbage of earlier calls collected, before the clock starts."""
    call = make()
    gc.collect()
    start = clock()
    call()
    return clock() - start


def chance(rounds: int) -> str:
    """Return how often equals look different by chance: `1 time in 32`."""
    return f"1 time in {2 ** (rounds - 1):,}" if rounds not in STUDENT else "at most 1 time in 20"


def rounded(value: float) -> str:
    """Return a quotient with the digits that say something: `6.3`, `0.55`, `1.004`; `1.00` is 1."""
    digits = 2 if value < 2 else 1 if value < 10 else 0  # more of them near 1, where they decide
    while value != 1 and digits < 6 and round(value, digits) == 1:
        digits += 1
    return f"{value:.{digits}f}"
