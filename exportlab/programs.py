"""Programs that a page needs besides Python: are they there, and what to install if not. Not here: Python packages, nor running them."""

from __future__ import annotations

import shutil

PACKAGES = {"node": "nodejs", "npm": "npm", "chromium": "chromium", "cmake": "cmake", "g++": "g++"}  # Debian's, by program


class MissingProgram(RuntimeError):
    """A program that is needed here is not installed."""


def missing(*programs: str) -> list[str]:
    """Those that are not on the path."""
    return [program for program in programs if shutil.which(program) is None]


def require(*programs: str) -> None:
    """Nothing, where all of these programs are on the path.

    Raises:
        MissingProgram: some are not; the message says how Debian calls their packages.
    """
    if absent := missing(*programs):
        packages = " ".join(PACKAGES.get(program, program) for program in absent)
        raise MissingProgram(f"not on the path: {', '.join(absent)}. On Debian or Ubuntu: apt install {packages}")
