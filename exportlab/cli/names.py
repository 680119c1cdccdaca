"""Names in one word of the command line, separated by commas, and behind a colon where they are of a file."""

from __future__ import annotations


def split_names(names: str) -> tuple[str, ...]:
    """Return the names, each once."""
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def file_of(cases: str) -> str | None:
    """Return the file in `FILE.py` or `FILE.py:NAMES`; None where the names are of the zoo."""
    if cases.endswith(".py"):
        return cases
    path = cases.rpartition(":")[0]
    return path if path.endswith(".py") else None
