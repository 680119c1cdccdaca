"""Show the progress of a sweep: a bar with counts by outcome while it runs, and totals at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .. import show
from ..outcomes import Outcome
from .records import Record
from .runner import Tell

WARNED = "of these warned"
STEPS = 20  # lines that a sweep prints when the output is not a terminal


@contextmanager
def progress(tasks: int) -> Iterator[Tell]:
    """Yield the progress callback for `sweep`: a bar on a terminal, otherwise occasional lines. Both go to standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lines(console, tasks)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as bar:
        shown = bar.add_task("starting", total=tasks)
        yield lambda outcomes, left: bar.update(shown, completed=tasks - left, description=format_counts(outcomes))


def lines(console: Console, tasks: int) -> Tell:
    """Return a callback that prints a line after each twentieth of the tasks."""
    told: set[int] = set()

    def tell(outcomes: Counter[Outcome], left: int) -> None:
        step = (tasks - left) * STEPS // max(tasks, 1)
        if step not in told:
            told.add(step)
            console.print(f"{tasks - left} of {tasks}: {format_counts(outcomes)}", soft_wrap=True, highlight=False)

    return tell


def format_counts(outcomes: Counter[Outcome]) -> str:
    """Format counts by outcome, such as `wrong 2, ok 31`."""
    return ", ".join(f"{outcome} {outcomes[outcome]}" for outcome in Outcome if outcomes[outcome]) or "starting"


def totals(records: Sequence[Record]) -> show.Table:
    """Return counts by outcome with a row per exporter and mode, and how many wrong or frozen runs warned of the cause."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        counts.setdefault((record.exporter, record.mode), Counter()).update([record.outcome, *[WARNED] * record.warned])
    seen = [word for word in (*Outcome, WARNED) if any(count[word] for count in counts.values())]
    rows = [{"exporter": e, "mode": m, **{word: count[word] or "" for word in seen}} for (e, m), count in sorted(counts.items())]
    return show.table(rows)
