"""Times that can be compared: taken in interleaved rounds, read as paired ratios, kept in pyperf's format. Not here: what is timed."""

from __future__ import annotations

import argparse
import gc
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch

from .files import written_whole

Group = TypeVar("Group", bound=Hashable)
Round = Mapping[str, float]
Make = Callable[[], Callable[[], object]]

# What pyperf finds out by itself and may leave the machine; its host name, paths and boot time stay.
KEPT = ("cpu_count", "cpu_model_name", "date", "perf_version", "python_implementation", "python_version", "timer")


@dataclass(frozen=True)
class Ratio:
    """Quotients of seconds; prints as their median with the lowest and the highest, or says that no difference was seen."""

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
    def differs(self) -> bool:
        """Whether all lie on one side of 1."""
        return not self.low <= 1 <= self.high

    def __str__(self) -> str:
        spread = f"({_short(self.low)}–{_short(self.high)})"
        return f"{_short(self.median)}x {spread}" if self.differs else f"no difference seen {spread}"


@dataclass(frozen=True)
class Timings:
    """Seconds by name, one mapping a round; the first rounds, discarded, are kept apart."""

    discarded: tuple[Round, ...]
    rounds: tuple[Round, ...]

    def of(self, name: str) -> tuple[float, ...]:
        """The seconds of one name, round by round."""
        return tuple(seconds[name] for seconds in self.rounds)

    def median(self, name: str) -> float:
        """The seconds of one name in its middle round."""
        return statistics.median(self.of(name))

    def ratio(self, name: str, base: str) -> Ratio:
        """The seconds of `name` over those of `base`, paired: both of the same round."""
        return Ratio(tuple(seconds[name] / seconds[base] for seconds in self.rounds))

    def growth(self, name: str, start: Timings) -> Ratio:
        """The seconds of `name` over those that it took in `start`, paired likewise: both were measured in the same rounds."""
        return Ratio(tuple(now / then for now, then in zip(self.of(name), start.of(name), strict=True)))


def summed(timings: Iterable[Timings], names: Sequence[str]) -> Timings:
    """The seconds of several groups added up, round by round: a group that takes longer counts for more."""
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
    """Times what every maker of every group makes, once a round; each round begins a group with its next name, so none is always first.

    Args:
        groups: what is to be compared stands in one group, and is timed close together: by name, a function that prepares one
            call and returns it. Only the call is timed.
        discard: rounds before the first that counts.
        budget: seconds after which no further round begins, provided that `least` rounds counted.
        tell: takes a line after each round.
    """
    done, start = [], clock()
    with frozen():
        while len(done) < discard + rounds and (len(done) < discard + least or clock() - start < budget):
            done.append({group: one_round(makers, len(done), clock) for group, makers in groups.items()})
            tell(f"round {len(done)} of {discard + rounds}, {clock() - start:.0f} s")
    taken = {group: tuple(seen[group] for seen in done) for group in groups}
    return {group: Timings(seen[:discard], seen[discard:]) for group, seen in taken.items()}


def one_round(makers: Mapping[str, Make], first: int, clock: Callable[[], float] = time.perf_counter) -> Round:
    """The seconds of each maker's call, beginning with the `first`, counted around."""
    names = list(makers)
    begin = first % len(names)
    took = {name: seconds(makers[name], clock) for name in names[begin:] + names[:begin]}
    return {name: took[name] for name in names}


@contextmanager
def frozen() -> Iterator[None]:
    """What is alive now is not looked at by the garbage collector, which still collects what the block leaves."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def seconds(make: Make, clock: Callable[[], float] = time.perf_counter) -> float:
    """How long one call takes; it is prepared, and the garbage of earlier calls collected, before the clock starts."""
    call = make()
    gc.collect()
    start = clock()
    call()
    return clock() - start


def environment(packages: Iterable[str]) -> dict[str, Any]:
    """What the times depend on: processor, threads, Python, the versions of `packages`; nothing that names the machine."""
    import pyperf

    found = pyperf.Run([1.0]).get_metadata()
    return {
        **{key: found[key] for key in KEPT if key in found},
        "system": f"{platform.system()} {platform.machine()}",
        "torch_threads": torch.get_num_threads(),
        **{f"{package}_version": version(package) for package in packages},
    }


def machine(packages: Iterable[str]) -> str:
    """The environment in one line."""
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{os.cpu_count()} cores, {torch.get_num_threads()} torch threads, Python {platform.python_version()}, {versions}"


def save(path: str | Path, timings: Mapping[str, Timings], metadata: Mapping[str, Any], unit: str = "second") -> Path:
    """Writes one pyperf benchmark for each name in each of `timings`; `python -m pyperf compare_to` reads two such files.

    Args:
        unit: what was counted in place of seconds, as pyperf calls it: `byte`, `integer`.

    Raises:
        OSError: the file cannot be written.
    """
    import pyperf

    benchmarks = [
        pyperf.Benchmark([_run(timing, name, {**metadata, "name": f"{title}, {name}", "unit": unit})])
        for title, timing in timings.items()
        for name in timing.rounds[0]
    ]
    with written_whole(path) as draft:
        pyperf.BenchmarkSuite(benchmarks).dump(str(draft))
    return Path(path)


def arguments(question: str, quick: str) -> argparse.Namespace:
    """The command line that every benchmark has: `quick`, `json`, `plot`. A notebook has none of its own and runs quick.

    Args:
        question: what the benchmark answers; `quick`: what its quick run leaves out.
    """
    notebook = "ipykernel" in sys.modules
    parser = argparse.ArgumentParser(description=question, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", type=_new_file, metavar="FILE", help="write the times to FILE, in pyperf's format")
    parser.add_argument("--plot", type=_new_plot, metavar="FILE", help="write the plot to FILE (.png, .svg, .pdf)")
    given, unknown = parser.parse_known_args()
    if unknown and not notebook:
        parser.error(f"unknown: {' '.join(unknown)}")
    given.quick = given.quick or notebook
    return given


def _new_file(name: str) -> Path:
    """A path that can be written: better to know before the measurement than after it."""
    path = Path(name)
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write {name}: no such folder, or no right to write there")
    return path


def _new_plot(name: str) -> Path:
    if not name.endswith((".png", ".svg", ".pdf")):
        raise argparse.ArgumentTypeError(f"cannot write {name}: a plot ends in .png, .svg or .pdf")
    return _new_file(name)


def _run(timing: Timings, name: str, metadata: Mapping[str, Any]) -> Any:
    import pyperf

    discarded = [(1, seconds[name]) for seconds in timing.discarded]
    return pyperf.Run(timing.of(name), warmups=discarded, metadata=dict(metadata), collect_metadata=False)


def _short(value: float) -> str:
    digits = 2 if value < 2 else 1 if value < 10 else 0  # more of them near 1, where they decide
    return f"{value:.{digits}f}"
