"""Two benches of a model held against each other: which outcomes changed, and which times beyond noise."""

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
    """What differs between two benches; prints as a table, renders as HTML."""

    outcomes: Sequence[Change]
    times: Sequence[Times]

    def different(self) -> list[Times]:
        """Return the times that were called faster or slower."""
        return [times for times in self.times if times.verdict in ("faster", "slower")]

    def __str__(self) -> str:
        said = f"{len(self.different())} of {len(self.times)} times differ beyond noise, and {len(self.outcomes)} outcomes."
        return "\n".join([*map(str, self.outcomes), repr(self._table()), said])

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
        return show.table(rows, "A call is counted in calls of eager, which was timed in turns with it; all else in seconds")


def compared(before: Sequence[Record], after: Sequence[Record]) -> Compared:
    """Return what differs, of the ways and sizes that both have; a wrong file has no times here."""
    old, new = Bench(before).ways(), Bench(after).ways()
    both = [(old[name], new[name]) for name in old if name in new and old[name].ranked and new[name].ranked]
    return Compared(changes(before, after).outcomes, [times for pair in both for times in _times(*pair)])


def _times(old: Way, new: Way) -> Iterator[Times]:
    for figure in (*ONCE, *(CALL + size for size in old.sizes())):
        then, now = _collect_values(old, figure), _collect_values(new, figure)
        if then and now:
            yield Times(old.name, figure, Ratio(tuple(b / a for b, a in product(now, then))), (len(then), len(now)))


def _collect_values(way: Way, figure: str) -> tuple[float, ...]:
    """What was seen of a figure: a call in calls of eager, so that a busier machine does not count; of eager itself, seconds."""
    if figure.startswith(CALL) and way.name != "eager":
        return way.ratio(figure.removeprefix(CALL)).seen
    return way.seconds(figure)
