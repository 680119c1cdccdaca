"""What a script, a page, a notebook or a test reads of this repository, and digests of it: it is stale when its fingerprint is another.

What is read is computed from the text, not listed by hand: what a file imports, transitively and also inside functions; the files that its
strings and paths name; the cases and known errors that it asks for. `python tools/stale PATH ...` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from .hashing import combined, hashed, of_code, of_text
from .reading import Name, Text, Whole, steps_from
from .tree import ROOT

__all__ = ["ROOT", "digest", "fingerprint", "reads", "state"]


def reads(path: Path) -> frozenset[Path]:
    """Return every file of the repository that a script, module, notebook or test depends on, itself included."""
    code, text = _reads(path.resolve())
    return code | text


def state(*paths: Path) -> tuple[str, ...]:
    """Return a line for each file that some files read, its digest and its place: as long as they are the same, so is a run.

    What is executed counts without the docstrings of the packages that nobody shows; what is read as text counts to the letter.
    """
    read = [_reads(path.resolve()) for path in paths]
    code, text = ({path for parts in read for path in parts[kind]} for kind in (0, 1))
    return (*combined(code, of_code), *combined(text, of_text))


def fingerprint(*paths: Path) -> str:
    """Return one digest of the `state` of some files."""
    return hashed(state(*paths))


def digest(paths: Iterable[Path]) -> str:
    """Return a digest of some files as code: a docstring of the packages that nobody shows is no part of it."""
    return hashed(combined({path.resolve() for path in paths}, of_code))


@cache
def _reads(path: Path) -> tuple[frozenset[Path], frozenset[Path]]:
    """The files that are executed, and those that are read as text."""
    steps = steps_from(path)
    code = frozenset(step.path for step in steps if isinstance(step, Whole | Name))
    return code, frozenset(step.path for step in steps if isinstance(step, Text))
