"""The doctor at the command line: progress on standard error, the diagnosis on standard output. Not here: options."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from .run import Event, Learned, Options, Started, warm_up
from .target import examined

INTERRUPTED = 130


def diagnosed(target: str, options: Options, output: Path | None) -> int:
    """Prints the diagnosis, writes the report where one is wanted, and returns the exit code."""
    began = time.monotonic()
    console = Console(stderr=True)
    try:
        with progress(console) as tell:
            tell(Started("warm up"))
            warm_up(options.exporters)
            found = examined(target, replace(options, seconds=max(options.seconds - (time.monotonic() - began), 1.0)), tell)
    except KeyboardInterrupt:
        console.print("exportlab: interrupted", markup=False)
        return INTERRUPTED
    print(found)
    if found.facts.saved:
        print(f"\nwrote {found.facts.saved}")
    if output is not None:
        print(f"\nthe report is in {found.save(output)}")
    return found.verdict.code


@contextmanager
def progress(console: Console) -> Iterator[Callable[[Event], None]]:
    """Yields what takes the events: a line that says which step it is, and above it what became of those before."""
    if not console.is_terminal:
        yield lambda event: _line(console, event)
        return
    with console.status("starting") as status:

        def tell(event: Event) -> None:
            if isinstance(event, Started):
                status.update(event.step)
            else:
                _line(console, event)

        yield tell


def _line(console: Console, event: Event) -> None:
    if isinstance(event, Learned) and event.field == "tried":
        console.print(f"{event.value.label}: {event.value.outcome}", markup=False, highlight=False)
