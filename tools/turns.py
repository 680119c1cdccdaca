"""Select the files that CI runs at a commit, if there are too many: one part in turn, and the files edited lately."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LATELY = 10  # commits


def select_in_turn(files: Sequence[Path], parts: int, sources: Callable[[Path], Iterable[Path]]) -> list[Path]:
    """Return one of `parts` parts of the files, and the files with a source that was edited in the last commits."""
    turn, edited = count_commits() % parts, edited_files()
    return [file for number, file in enumerate(files) if number % parts == turn or not edited.isdisjoint(sources(file))]


def count_commits() -> int:
    """Return the number of commits up to HEAD, or 0 without a repository."""
    return int(git("rev-list", "--count", "HEAD") or 0)


def edited_files() -> set[Path]:
    """Return the files that the last commits edited."""
    return {ROOT / line for line in git("log", f"-{LATELY}", "--name-only", "--format=").splitlines() if line}


def git(*arguments: str) -> str:
    """Return the output of git, or "" if it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
