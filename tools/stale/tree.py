"""The files of the repository, and which of them a module's name or a string may mean."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("exportlab", "fx2onnx", "content")
MADE = {"build", "generated"}  # at the root: what is written, not read
HIDDEN = {".ci", ".devcontainer", ".github"}  # hidden folders that are part of the repository
OTHER_FOLDERS = ("tools", "docs/_ext", "docs", "tutorials")  # that pages and tools import from


@cache
def files() -> frozenset[Path]:
    """Return every file of the repository, built and installed ones left out."""
    found: set[Path] = set()
    for folder, folders, names in os.walk(ROOT):
        here = Path(folder)
        folders[:] = [name for name in folders if not _left_out(here, name)]
        found.update(here / name for name in names if not name.endswith(".pyc"))
    return frozenset(found)


def _left_out(parent: Path, name: str) -> bool:
    hidden = name.startswith(".") and name not in HIDDEN
    return hidden or name == "__pycache__" or name.endswith(".egg-info") or (parent == ROOT and name in MADE)


@cache
def folders() -> frozenset[Path]:
    """Return every folder that holds a file of the repository."""
    return frozenset(parent for path in files() for parent in path.parents if parent != ROOT and parent.is_relative_to(ROOT))


@cache
def within(folder: Path) -> frozenset[Path]:
    """Return the files below a folder."""
    return frozenset(path for path in files() if path.is_relative_to(folder))


@cache
def data_beside(package: Path) -> frozenset[Path]:
    """Return what a package brings besides modules: the files of its folder that are none, those of folders without modules included."""
    with_modules = {path.parent for path in within(package) if path.suffix == ".py"} - {package}
    return frozenset(path for path in within(package) if path.suffix != ".py" and not with_modules.intersection(path.parents))


@cache
def names() -> frozenset[str]:
    """Return the last part of the name of every file and folder."""
    return frozenset(place.name for place in files() | folders())


@cache
def project() -> dict[str, dict[str, object]]:
    """Return what pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def import_roots(folder: Path) -> tuple[Path, ...]:
    """Return the folders in which a file of `folder` may find a module: those of the project, of its tests, and its own."""
    for_tests = project()["tool"]["pytest"]["ini_options"].get("pythonpath", ())
    return tuple(dict.fromkeys([ROOT, *(ROOT / name for name in (*for_tests, *OTHER_FOLDERS)), folder]))


@cache
def module_at(place: Path) -> Path | None:
    """Return the file of the module or package whose name ends at `place`; None where there is none."""
    return next((path for path in (place / "__init__.py", place.with_name(f"{place.name}.py")) if path in files()), None)


def meant_by(text: str, file: Path) -> Iterator[Path]:
    """Yield the files and folders that a string in `file` names, from the root, from a folder around the file, or as its own suffix."""
    if not text or "\n" in text:
        return
    if text.startswith(".") and "/" not in text and file.stem + text != file.name:
        yield from _known([file.with_name(file.stem + text)])
    if "*" in text and "/" in text:
        yield from (path for path in files() if path.relative_to(ROOT).match(text))
    elif text.rstrip("/").rpartition("/")[2] in names():
        yield from _known(base / text for base in (ROOT, *(parent for parent in file.parents if parent.is_relative_to(ROOT))))


def _known(places: Iterable[Path]) -> Iterator[Path]:
    for place in map(Path, map(os.path.normpath, places)):
        if place in files() or place in folders():
            yield place
