"""The files that a landing runs, of those that are too many for each: a part that changes with each commit, and those edited lately."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LATELY = 10  # commits


def in_turn(files: Sequence[Path], parts: int, sources: Callable[[Path], Iterable[Path]]) -> list[Path]:
    """Return one of so many parts of these files, and those of which a source was edited in the last commits."""
    turn, edited = count_commits() % parts, edited_files()
    return [file for number, file in enumerate(files) if number % parts == turn or not edited.isdisjoint(sources(file))]


def count_commits() -> int:
    """Return how many commits lead here; 0 where there is no repository."""
    return int(git("rev-list", "--count", "HEAD") or 0)


def edited_files() -> set[Path]:
    """Return the files that the last commits edited."""
    return {ROOT / line for line in git("log", f"-{LATELY}", "--name-only", "--format=").splitlines() if line}


def git(*arguments: str) -> str:
    """Return what git prints; nothing where it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
