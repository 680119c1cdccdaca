"""What a page needs besides Python packages: is it there, and how to get it if not."""

from __future__ import annotations

import shutil
from pathlib import Path

from .checks import must_be_names
from .printable import one_line

ROOT = Path(__file__).parent.parent
PACKAGES = {"node": "nodejs", "ninja": "ninja-build"}  # Debian's, where they have another name than the program
TARGETS = {"build/onnxruntime": "headers"}  # of make, by the folder that each fetches; all others are fetched by `make web`


class MissingProgram(RuntimeError):
    """A program, or a file that has to be fetched, is needed here and not there."""


def missing(*needed: str) -> list[str]:
    """Return those that are not there: a program, by its name; or what make fetches, by its path in the repository, or here."""
    return [name for name in needed if not (_is_fetched(name) if "/" in name else shutil.which(name))]


def _is_fetched(name: str) -> bool:
    return any((folder / name).exists() for folder in (ROOT, Path("..")))


def require(*needed: str) -> None:
    """Check that all of these are there: programs by their names, and what make fetches by its path in the repository.

    Raises:
        MissingProgram: some are not; the message says how to get them. TypeError: one is no name.
    """
    must_be_names(needed=needed)
    absent = missing(*needed)
    programs, files = ([name for name in absent if ("/" in name) == fetched] for fetched in (False, True))
    said = [f"not on the path: {', '.join(programs)}. On Debian or Ubuntu: apt install {_packages(programs)}"] if programs else []
    said += [f"not there: {', '.join(files)}. In the repository: make {_targets(files)}"] if files else []
    if said:
        raise MissingProgram(one_line("; ".join(said)))


def _packages(programs: list[str]) -> str:
    return " ".join(PACKAGES.get(program, program) for program in programs)


def _targets(files: list[str]) -> str:
    return " ".join(dict.fromkeys(next((TARGETS[folder] for folder in TARGETS if file.startswith(folder)), "web") for file in files))
