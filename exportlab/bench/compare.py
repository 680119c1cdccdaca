"""Compare two benchmarks of a model: which outcomes changed, and which times differ beyond noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from .. import show
from ..measure.timing import Ratio
from ..sweep.changes import Change, Times, changes
from ..sweep.records import Record
from .result import CALL, Bench, Way

ONCE = ("export", "load", "first")


@dataclass(frozen=True, repr=False)
class Compared(show.Tabular):
    """The differences between two benchmarks. Prints as a table and renders as HTML."""

    outcomes: Sequence[Change]
    times: Sequence[Times]

    def different(self) -> list[Times]:
        """Return the times whose verdict is faster or slower."""
        return [times for times in self.times if times.verdict in ("faster", "slower")]

    def __str__(self) -> str:
        summary = f"{len(self.different())} of {len(self.times)} times differ beyond noise, and {len(self.outcomes)} outcomes changed."
        return "\n".join([*map(str, self.outcomes), repr(self._table()), summary])

    def _table(self) -> show.Table:
        rows = [
            {
                "run by": Way(times.exporter, ()).spoken,
                "what": times.figure,
                "second over first": f"{times.ratio.median:.3g}x ({times.ratio.low:.3g}–{times.ratio.high:.3g})",
                "rounds": "/".join(map(str, times.rounds)),
                "": times.verdict,
            }
            for times in self.times
        ]
        return show.table(rows, "Calls are relative to eager mode, timed alternately; other figures are in seconds")


def compared(before: Sequence[Record], after: Sequence[Record]) -> Compared:
    """Return the differences for all ways and sizes in both benchmarks. Times of wrong models are left out."""
    old, new = Bench(before).ways(), Bench(after).ways()
    both = [(old[name], new[name]) for name in old if name in new and old[name].ranked and new[name].ranked]
    return Compared(changes(before, after).outcomes, [times for pair in both for times in _times(*pair)])


def _times(old: Way, new: Way) -> Iterator[Times]:
    for figure in (*ONCE, *(CALL + size for size in old.sizes())):
        then, now = _collect_values(old, figure), _collect_values(new, figure)
        if then and now:
            yield Times(old.name, figure, Ratio(tuple(b / a for b, a in product(now, then))), (len(then), len(now)))


def _collect_values(way: Way, figure: str) -> tuple[float, ...]:
    """Return the values of a figure. Calls are relative to eager mode, which cancels machine load; eager calls are in seconds."""
    if figure.startswith(CALL) and way.name != "eager":
        return way.ratio(figure.removeprefix(CALL)).seen
    return way.seconds(figure)
