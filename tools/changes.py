"""Digests of files, by which tests, pages and the site are left alone while nothing they can depend on has changed."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
WRITTEN = {"build", "generated", "sg_execution_times.rst"}  # at the root, by make
HIDDEN = {".ci", ".devcontainer", ".github"}  # hidden folders that belong to the repository
PACKAGES = ("fx2onnx", "exportlab", "content/zoo")


def repository_files(root: Path = ROOT) -> list[Path]:
    """Return every file of a checkout but hidden ones and those that make, pip and Python write."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = [name for name in folders if not (_is_written(here / name, root) or (name.startswith(".") and name not in HIDDEN))]
        found += [here / name for name in names if not name.startswith(".") and not _is_written(here / name, root)]
    return sorted(found)


def _is_written(path: Path, root: Path) -> bool:
    return path.name == "__pycache__" or path.suffix in (".egg-info", ".pyc") or (path.parent == root and path.name in WRITTEN)


def digest(paths: Iterable[Path], *further: str) -> str:
    """Return a digest of the names and bytes of files, and of further text."""
    made = hashlib.blake2b(digest_size=16)
    for path in paths:
        made.update(os.path.relpath(path, ROOT).encode() + b"\0" + path.read_bytes() + b"\0")
    for text in further:
        made.update(text.encode() + b"\0")
    return made.hexdigest()


@cache
def packages() -> str:
    """Return a digest of the packages of this repository that a page can import."""
    return digest(path for name in PACKAGES for path in sorted((ROOT / name).rglob("*")) if path.is_file() and path.suffix != ".pyc")


def environment() -> str:
    """Return Python's version and the installed packages, a line each."""
    installed = (path.name for path in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    return "\n".join([sys.version, *sorted(installed)])


def is_noted(note: Path, state: str) -> bool:
    """Return whether a note holds this state."""
    return note.exists() and note.read_text(encoding="utf-8") == state


def write_note(note: Path, state: str) -> None:
    """Write a state into a note, whole or not at all."""
    note.parent.mkdir(parents=True, exist_ok=True)
    new = note.with_suffix(".new")
    new.write_text(state, encoding="utf-8")
    new.replace(note)
