"""Split names on the command line: `A,B,C` or `FILE.py:A,B`."""

from __future__ import annotations


def split_names(names: str) -> tuple[str, ...]:
    """Return the names without duplicates."""
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def file_of(cases: str) -> str | None:
    """Return the file in `FILE.py` or `FILE.py:NAMES`, or None if the names are cases of the test suite."""
    if cases.endswith(".py"):
        return cases
    path = cases.rpartition(":")[0]
    return path if path.endswith(".py") else None
