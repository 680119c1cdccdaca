"""Measure times in interleaved rounds and compare them as paired ratios."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from fx2onnx.garbage import older_objects_frozen

from ..checks import must_be, must_be_whole

Group = TypeVar("Group", bound=Hashable)
Taken = TypeVar("Taken")
Round = Mapping[str, float]
Make = Callable[[], Callable[[], object]]

STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}  # Student's t for 95 %, by the number of rounds


@dataclass(frozen=True)
class Ratio:
    """Ratios of times. Prints as the median with its interval, or as "no difference seen" if the interval contains 1."""

    seen: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median ratio."""
        return statistics.median(self.seen)

    @property
    def low(self) -> float:
        """The lowest ratio."""
        return min(self.seen)

    @property
    def high(self) -> float:
        """The highest ratio."""
        return max(self.seen)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the ratio: the lowest and the highest value.

        With six rounds, chance puts all ratios of equals on one side of 1 less than 1 time in 20 (2 / 2⁶). With fewer rounds, the interval
        also covers Student's interval of the mean logarithm.
        """
        if len(self.seen) not in STUDENT or self.low <= 0:  # counts may be zero
            return self.low, self.high
        logs = [math.log(quotient) for quotient in self.seen]
        middle, reach = statistics.mean(logs), STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
        return min(self.low, math.exp(middle - reach)), max(self.high, math.exp(middle + reach))

    @property
    def differs(self) -> bool:
        """Whether the interval excludes 1. All pages use this criterion for a difference."""
        low, high = self.interval
        return not low <= 1 <= high

    def __str__(self) -> str:
        low, high = (rounded(end) for end in self.interval)
        return f"{rounded(self.median)}x ({low}–{high})" if self.differs else f"no difference seen ({low}–{high})"


@dataclass(frozen=True)
class Timings:
    """Seconds by name, one mapping per round. The first, discarded rounds are kept separately."""

    discarded: tuple[Round, ...]
    rounds: tuple[Round, ...]

    def each(self, calls: int) -> Timings:
        """Return the time of one call, if `calls` calls were timed together."""
        kept = (tuple({name: seconds / calls for name, seconds in one.items()} for one in part) for part in (self.discarded, self.rounds))
        return Timings(*kept)

    def of(self, name: str) -> tuple[float, ...]:
        """Return the seconds of one name, round by round."""
        return tuple(seconds[name] for seconds in self.rounds)

    def median(self, name: str) -> float:
        """Return the median of the seconds of one name."""
        return statistics.median(self.of(name))

    def ratio(self, name: str, base: str) -> Ratio:
        """Return the ratios of `name` to `base`, each from the same round."""
        return Ratio(tuple(seconds[name] / seconds[base] for seconds in self.rounds))

    def growth(self, name: str, start: Timings) -> Ratio:
        """Return the ratios of `name` to its times in `start`, which were measured in the same rounds."""
        return Ratio(tuple(now / then for now, then in zip(self.of(name), start.of(name), strict=True)))


def summed(timings: Iterable[Timings], names: Sequence[str]) -> Timings:
    """Add up the times of several groups, round by round. Slower groups therefore have more weight."""
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
    """Time the calls of all groups in interleaved rounds. Each round starts a group with a different name, so that none is always first.

    Args:
        groups: groups of calls to compare, which are timed close together. Each maker is a function that prepares a call and returns it.
            Only the call is timed.
        discard: number of rounds to discard at the start.
        budget: seconds after which no new round starts, if at least `least` rounds are recorded.
        tell: called with a progress line after each round.

    Raises:
        TypeError, ValueError: an argument is invalid. The message names it.
    """
    must_be(Mapping, groups=groups)
    for group, makers in groups.items():
        must_be(Mapping, **{f"groups[{group!r}]": makers})
        if not makers or not all(map(callable, makers.values())):
            raise TypeError(f"groups[{group!r}] must contain at least one function")
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
    """Return the time of each maker's call. The order starts with the name at position `first`, modulo their number."""
    return by_turns(makers, first, lambda name: seconds(makers[name], clock))


def by_turns(names: Iterable[str], first: int, take: Callable[[str], Taken]) -> dict[str, Taken]:
    """Call `take` for each name, starting at position `first` modulo their number. Return the results in the original order."""
    ordered = list(names)
    begin = first % len(ordered)
    taken = {name: take(name) for name in ordered[begin:] + ordered[:begin]}
    return {name: taken[name] for name in ordered}


@contextmanager
def frozen() -> Iterator[None]:
    """Exclude live objects from garbage collection during the block. New garbage is collected. Objects frozen before a fork stay so."""
    gc.collect()
    with older_objects_frozen():
        yield


def seconds(make: Make, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time of one call. Preparation and garbage collection happen before the clock starts."""
    call = make()
    gc.collect()
    start = clock()
    call()
    return clock() - start


def chance(rounds: int) -> str:
    """Return how often equally fast calls look different by chance: `1 time in 32`."""
    return f"1 time in {2 ** (rounds - 1):,}" if rounds not in STUDENT else "at most 1 time in 20"


def rounded(value: float) -> str:
    """Format a ratio with its significant digits: `6.3`, `0.55`, `1.004`. Exactly 1 is `1.00`."""
    digits = 2 if value < 2 else 1 if value < 10 else 0  # more digits near 1, where they matter
    while value != 1 and digits < 6 and round(value, digits) == 1:
        digits += 1
    return f"{value:.{digits}f}"
