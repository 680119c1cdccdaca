"""Find what was made from files that have changed since: a digest of its sources stands beside what was made."""

from __future__ import annotations

from pathlib import Path

from changes import digest, is_noted, packages
from site_files import write


def made_of(source: Path, *makers: Path) -> str:
    """Return a digest of a script, of the packages that it can import, and of the extensions that make something of it."""
    return f"{digest([source, *makers])} {packages()}\n"


def is_fresh(made: Path, sources: str) -> bool:
    """Return whether a file is there, and was made of these sources."""
    return made.exists() and is_noted(stamp_of(made), sources)


def mark_fresh(made: Path, sources: str) -> None:
    """Note what a file is made of."""
    write(stamp_of(made), sources)


def stamp_of(made: Path) -> Path:
    """Return where it is noted."""
    return made.with_name(f"{made.name}.sources")
