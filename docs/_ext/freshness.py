"""Detect outdated generated files: a digest of the sources is stored next to each generated file."""

from __future__ import annotations

from pathlib import Path

from changes import digest, is_noted, packages
from site_files import write


def made_of(source: Path, *makers: Path) -> str:
    """Return a digest of a script, of the packages it can import, and of the extensions that process it."""
    return f"{digest([source, *makers])} {packages()}\n"


def is_fresh(made: Path, sources: str) -> bool:
    """Return whether a file exists and was made from the current sources."""
    return made.exists() and is_noted(stamp_of(made), sources)


def mark_fresh(made: Path, sources: str) -> None:
    """Store the digest of a file's sources."""
    write(stamp_of(made), sources)


def stamp_of(made: Path) -> Path:
    """Return the path of the stored digest."""
    return made.with_name(f"{made.name}.sources")
