"""What a script, a page, a notebook or a test reads of this repository, and digests of it: it is stale when its fingerprint is another.

What is read is computed from the text, not listed by hand: what a file imports, transitively and also inside functions; the files that its
strings and paths name; the cases and known errors that it asks for. `python tools/stale PATH ...` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from .content import is_declaration
from .hashing import combined, hashed, of_code, of_part, of_text
from .reading import Name, Step, Text, Whole, steps_from
from .tree import ROOT

__all__ = ["ROOT", "digest", "fingerprint", "reads", "state"]


def reads(path: Path) -> frozenset[Path]:
    """Return every file of the repository that a script, module, notebook or test depends on, itself included."""
    return frozenset(step.path for step in _steps(path) if isinstance(step, Whole | Name | Text))


def state(*starts: Path | Step) -> tuple[str, ...]:
    """Return a line for each thing that some files, or steps, read, its digest and its place: as long as they are the same, so is a run.

    What is executed counts without the docstrings of the packages that nobody shows; what is read as text counts to the letter; of a module
    of content only what is asked for by name.
    """
    steps = {step for start in starts for step in _steps(start)}
    whole = {step.path for step in steps if isinstance(step, Whole) or (isinstance(step, Name) and not is_declaration(step.path))}
    parts = {step for step in steps if isinstance(step, Name) and step.path not in whole}
    by_name = sorted(f"{of_part(part.path, part.name)} {part.path.relative_to(ROOT).as_posix()}:{part.name}" for part in parts)
    return (*combined(whole, of_code), *by_name, *combined({step.path for step in steps if isinstance(step, Text)}, of_text))


def fingerprint(*paths: Path) -> str:
    """Return one digest of the `state` of some files."""
    return hashed(state(*paths))


def digest(paths: Iterable[Path]) -> str:
    """Return a digest of some files as code: a docstring of the packages that nobody shows is no part of it."""
    return hashed(combined({path.resolve() for path in paths}, of_code))


@cache
def _steps(start: Path | Step) -> set[Step]:
    """Everything that is read because of a file, or of a step."""
    return steps_from(start if isinstance(start, Step) else Whole(start.resolve()))
