"""Run the doctor on the command line, with progress on standard error and the diagnosis on standard output."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from .events import Event, Started, Tell, Trial
from .examine_file import examined
from .run import Options, warm_up

INTERRUPTED = 130


def run_diagnosis(target: str, options: Options, output: Path | None) -> int:
    """Print the diagnosis, write the report if `output` is set, and return the exit code."""
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
        print(f"\nwrote the report to {found.save(output)}")
    return found.verdict.code


@contextmanager
def progress(console: Console) -> Iterator[Tell]:
    """Yield a function that shows events: the current step on a status line, and the outcomes of exports above it."""
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
    if isinstance(event, Trial):
        console.print(f"{event.label}: {event.outcome}", markup=False, highlight=False)
