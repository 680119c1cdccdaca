"""Check for the programs and files that a page needs besides Python packages, and explain how to get them."""

from __future__ import annotations

import shutil
from pathlib import Path

from .checks import must_be_names
from .printable import one_line

ROOT = Path(__file__).parent.parent
PACKAGES = {"node": "nodejs", "ninja": "ninja-build"}  # Debian packages whose names differ from the program's
TARGETS = {"build/onnxruntime": "headers"}  # make targets by the folder they create; `make web` creates all other files


class MissingProgram(RuntimeError):
    """A required program or downloaded file is missing."""


def missing(*needed: str) -> list[str]:
    """Return the names that are missing: programs by name, and files that make creates by path, relative to the repository or the page."""
    return [name for name in needed if not (_is_fetched(name) if "/" in name else shutil.which(name))]


def _is_fetched(name: str) -> bool:
    return any((folder / name).exists() for folder in (ROOT, Path("..")))


def require(*needed: str) -> None:
    """Check that programs (by name) and files that make creates (by path in the repository) are available.

    Raises:
        MissingProgram: something is missing; the message explains how to get it.
        TypeError: an argument is not a string.
    """
    must_be_names(needed=needed)
    absent = missing(*needed)
    programs, files = ([name for name in absent if ("/" in name) == fetched] for fetched in (False, True))
    advice = [f"not on the path: {', '.join(programs)}. On Debian or Ubuntu: apt install {_packages(programs)}"] if programs else []
    advice += [f"not there: {', '.join(files)}. In the repository: make {_targets(files)}"] if files else []
    if advice:
        raise MissingProgram(one_line("; ".join(advice)))


def _packages(programs: list[str]) -> str:
    return " ".join(PACKAGES.get(program, program) for program in programs)


def _targets(files: list[str]) -> str:
    return " ".join(dict.fromkeys(next((TARGETS[folder] for folder in TARGETS if file.startswith(folder)), "web") for file in files))
