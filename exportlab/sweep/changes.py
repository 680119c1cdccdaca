"""Compare two files of records: which outcomes improved or regressed, and which times differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from .. import show
from ..checks import must_be_all
from ..diagnostics import names_cause
from ..measure.timing import Ratio
from ..outcomes import Outcome
from ..printable import one_line
from .devices import describe_move
from .records import FIGURES, Record, groups

LIKELY = 0.05  # separate ranges count only if chance would separate them less often than this
Run = tuple[str, str, str]  # case, exporter, mode


@dataclass(frozen=True)
class Change:
    """A run whose outcome changed."""

    run: Run
    before: Outcome
    after: Outcome
    detail: str = ""

    @property
    def kind(self) -> str:
        """`better`, `broke`, or `other` if one kind of refusal replaced another."""
        step = self.after.grade - self.before.grade
        return "better" if step < 0 else "broke" if step > 0 else "other"

    def row(self) -> dict[str, str]:
        """Return the change as a row of a table."""
        case, exporter, mode = self.run
        return {"case": case, "exporter": exporter, "mode": mode, "before": self.before, "after": self.after, "change": self.kind}

    def __str__(self) -> str:
        case, exporter, mode = map(one_line, self.run)
        return f"{case}, {mode}, {exporter}: {self.before} → {self.after} ({self.kind})"


@dataclass(frozen=True)
class Times:
    """One timing of one exporter, as ratios after / before: each later round divided by each earlier round."""

    exporter: str
    figure: str
    ratio: Ratio
    rounds: tuple[int, int]

    @property
    def verdict(self) -> str:
        """`faster` or `slower` if the ranges of seconds don't overlap, `noise` if they do, or `too few rounds`."""
        if chance_apart(*self.rounds) > LIKELY:
            return "too few rounds"
        return ("slower" if self.ratio.median > 1 else "faster") if self.ratio.differs else "noise"


@dataclass(frozen=True, repr=False)
class Changes(show.Tabular):
    """The differences between two sweeps. Prints as tables and renders as HTML.

    Attributes:
        moved: the devices of both sweeps, if they differ. Their times aren't comparable then.
    """

    outcomes: tuple[Change, ...]
    times: tuple[Times, ...]
    same: int
    only_before: tuple[Run, ...]
    only_after: tuple[Run, ...]
    moved: str = ""

    def __str__(self) -> str:
        return "\n\n".join(
            filter(None, [self.moved, self._outcome_text(), str(self._times_table()) if self.times else "", self._missing_text()])
        )

    def _outcome_text(self) -> str:
        head = f"{self.same} runs have the same outcome, {len(self.outcomes)} a different one."
        return "\n".join([head, *(f"  {change}{': ' * bool(change.detail)}{one_line(change.detail)}" for change in self.outcomes)])

    def _missing_text(self) -> str:
        found = ((self.only_before, "first"), (self.only_after, "second"))
        return "\n".join(f"{len(runs)} runs are only in the {which} file." for runs, which in found if runs)

    def _times_table(self) -> show.Table:
        return show.table([_row(times) for times in self.times], "Time of the second file divided by the time of the first")

    def _table(self) -> show.Table:
        rows = [
            dict(zip(("case", "exporter", "mode"), c.run, strict=True), before=c.before, after=c.after, change=c.kind)
            for c in self.outcomes
        ]
        return show.table(rows, " ".join(filter(None, [self.moved, self._outcome_text().splitlines()[0]])))


def changes(before: Sequence[Record], after: Sequence[Record]) -> Changes:
    """Return the changed outcomes, and the change in time of each exporter over all runs that succeeded in both sweeps.

    Raises:
        TypeError: an argument is not a sequence of records.
    """
    must_be_all(Record, before=before, after=after)
    old, new = groups(before), groups(after)
    both = [run for run in old if run in new]
    found = tuple(_find_change(run, old[run], new[run]) for run in both)
    outcomes = tuple(sorted((c for c in found if c is not None), key=lambda c: ("broke", "other", "better").index(c.kind)))
    only_before, only_after = (tuple(run for run in one if run not in other) for one, other in ((old, new), (new, old)))
    times = tuple(_times([(run, old[run], new[run]) for run in both]))
    return Changes(outcomes, times, len(both) - len(outcomes), only_before, only_after, describe_move(before, after))


def find_worst_record(rounds: Iterable[Record]) -> Record:
    """Return the record with the worst outcome. Among wrong ones, prefer a silent one."""
    return max(rounds, key=lambda record: (record.outcome.grade, record.silent))


def chance_apart(before: int, after: int) -> float:
    """Return the probability that n and m values from one distribution don't overlap: 2·n!·m!/(n+m)!."""
    return min(1.0, 2 / math.comb(before + after, before))


def _find_change(run: Run, before: Sequence[Record], after: Sequence[Record]) -> Change | None:
    then, now = find_worst_record(before), find_worst_record(after)
    if then.outcome == now.outcome:
        return None
    detail = (now.error or (str(now.failed[0]["detail"]) if now.failed else ""))[:100]
    causes = [f"it warned: {line[:100]}" for line in now.said if now.warned and names_cause(line)]
    return Change(run, then.outcome, now.outcome, "; ".join(filter(None, (detail, *causes[:1]))))


def _times(both: Sequence[tuple[Run, Sequence[Record], Sequence[Record]]]) -> Iterator[Times]:
    for exporter, figure in product(dict.fromkeys(run[1] for run, _, _ in both), FIGURES):
        pairs = [(old, new) for run, old, new in both if run[1] == exporter and _all_have(figure, (*old, *new))]
        if pairs:
            before, after = _sum_by_round([old for old, _ in pairs], figure), _sum_by_round([new for _, new in pairs], figure)
            quotients = tuple(now / then for now, then in product(after, before))
            yield Times(exporter, figure, Ratio(quotients), (len(before), len(after)))


def _all_have(figure: str, records: Iterable[Record]) -> bool:
    return all(figure in record.seconds for record in records)


def _sum_by_round(runs: Sequence[Sequence[Record]], figure: str) -> list[float]:
    """Add up the seconds of all runs, round by round. Skip rounds that some runs don't have."""
    return [sum(record.seconds[figure] for record in together) for together in zip(*runs, strict=False)]


def _row(times: Times) -> dict[str, Any]:
    ratio = times.ratio
    seen = f"{ratio.median:.3g}x ({ratio.low:.3g}–{ratio.high:.3g})"
    return {
        "exporter": times.exporter,
        "figure": times.figure,
        "ratio": seen,
        "rounds": "/".join(map(str, times.rounds)),
        "": times.verdict,
    }
