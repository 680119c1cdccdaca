"""Tell what was made from files that have changed since: the fingerprint of all that was read stands beside what was made."""

from __future__ import annotations

from pathlib import Path

from site_files import write
from stale import digest, fingerprint


def made_of(source: Path, *makers: Path) -> str:
    """Return a fingerprint of all that a script or module reads, and of the extensions that make something of it."""
    return f"{fingerprint(source)} {digest(makers)}\n"


def is_fresh(made: Path, sources: str) -> bool:
    """Return whether a file is there, and was made of these sources."""
    stamp = stamp_of(made)
    return made.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == sources


def mark_fresh(made: Path, sources: str) -> None:
    """Note what a file is made of."""
    write(stamp_of(made), sources)


def stamp_of(made: Path) -> Path:
    """Return where it is noted."""
    return made.with_name(f"{made.name}.sources")
