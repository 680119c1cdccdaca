"""What is found by name, not imported: the functions that find it, and which of its files a call can mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .source import DEFINITIONS, facts_of, tree_of
from .tree import ROOT, within


@dataclass(frozen=True)
class Finder:
    """A function that hands out content.

    Args:
        folder: the package that holds it.
        names_one: whether it takes the name of what is wanted. In the machinery, whose callers bring the name, such a call reads nothing
            by itself; any other call reads all that may be found.
    """

    folder: Path
    names_one: bool = False


ZOO, CATALOGUE = ROOT / "exportlab/zoo", ROOT / "exportlab/errors/catalogue"
CONTENT = (ZOO, CATALOGUE)
FINDERS = {
    (ZOO / "__init__.py", "cases"): Finder(ZOO),
    (ZOO / "__init__.py", "get"): Finder(ZOO, names_one=True),
    (ZOO / "__init__.py", "FAMILIES"): Finder(ZOO),
    (ROOT / "exportlab/errors/known.py", "catalogue"): Finder(CATALOGUE),
    (ROOT / "exportlab/errors/known.py", "recognise"): Finder(CATALOGUE),
    (ROOT / "exportlab/errors/known.py", "get"): Finder(CATALOGUE, names_one=True),
}
LOADERS = {ROOT / "fx2onnx/translate/registry.py": ROOT / "fx2onnx/ops"}  # a module that loads every module of a folder


def is_content(path: Path) -> bool:
    """Return whether a file is found by name."""
    return any(path.is_relative_to(folder) for folder in CONTENT)


def modules(folder: Path) -> list[Path]:
    """Return the modules of a package of content."""
    return [path for path in within(folder) if path.suffix == ".py"]


def holding(folder: Path, wanted: Iterable[str]) -> list[Path]:
    """Return the modules that one of some words can mean: their own name, a name they define, or a string in them, as a topic is."""
    words = frozenset(wanted)
    return [path for path in modules(folder) if words & words_of(path)]


def words_of(path: Path) -> set[str]:
    """Return the words by which a module may be found."""
    defined = {statement.name for statement in tree_of(path).body if isinstance(statement, DEFINITIONS)}
    return {path.stem, *defined, *facts_of(path).strings}
