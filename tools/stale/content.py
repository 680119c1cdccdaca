"""What is found, not imported: the functions that find it, and which of its files a call can mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .source import DEFINITIONS, facts_of, tree_of
from .tree import ROOT, within


@dataclass(frozen=True)
class Finder:
    """A function that hands out what the modules of a folder hold.

    Args:
        folder: a package.
        names_one: whether it takes the name of what is wanted: a call reads that one. Any other may read all there is.
    """

    folder: Path
    names_one: bool = False


ZOO, CATALOGUE, OPS = ROOT / "content/zoo", ROOT / "content/errors", ROOT / "fx2onnx/ops"
ATLAS = ROOT / "content/atlas"
CONTENT = (ZOO, CATALOGUE, ATLAS)
FINDERS = {
    (ROOT / "exportlab/cases.py", "registered"): Finder(ZOO),
    (ROOT / "exportlab/cases.py", "registered_case"): Finder(ZOO, names_one=True),
    (ROOT / "exportlab/cases.py", "atlas"): Finder(ATLAS, names_one=True),
    (ZOO / "__init__.py", "cases"): Finder(ZOO),
    (ZOO / "__init__.py", "get"): Finder(ZOO, names_one=True),
    (ZOO / "__init__.py", "FAMILIES"): Finder(ZOO),
    (ROOT / "exportlab/errors/known.py", "registered"): Finder(CATALOGUE),
    (ROOT / "exportlab/errors/known.py", "recognise"): Finder(CATALOGUE),
    (ROOT / "exportlab/errors/known.py", "candidates"): Finder(CATALOGUE),
    (ROOT / "exportlab/errors/known.py", "get"): Finder(CATALOGUE, names_one=True),
    (CATALOGUE / "__init__.py", "known_errors"): Finder(CATALOGUE),
    (OPS / "__init__.py", "own_translations"): Finder(OPS),
}
BY_NAME = {  # look through all there is for what their caller names
    *(ROOT / "exportlab" / name for name in ("cli/sweeping.py", "cli/reporting.py", "sweep/runner.py", "sweep/page/__init__.py")),
}


def is_content(path: Path) -> bool:
    """Return whether a file is found by name."""
    return any(path.is_relative_to(folder) for folder in CONTENT)


def modules(folder: Path) -> list[Path]:
    """Return the modules of a package of content."""
    return [path for path in within(folder) if path.suffix == ".py"]


def named(folder: Path, words: Iterable[str]) -> list[tuple[Path, str]]:
    """Return what some words are the names of: a module and what it declares by a decorator, as a case is; or a module, and no name.

    A family of cases, which is a module, can be named on the command line alone, by the option `--cases`.
    """
    wanted = frozenset(words)
    declared = [(path, name) for path in modules(folder) for name in wanted & _declared(path)]
    whole = [(path, "") for path in modules(folder) if path.stem in wanted]
    return [*declared, *(whole if folder != ZOO or "--cases" in wanted else ())]


def holding(folder: Path, words: Iterable[str]) -> list[Path]:
    """Return the modules that one of some words can mean: their name, one that they declare, or a string in them, as a topic is."""
    wanted = frozenset(words)
    return [path for path in modules(folder) if wanted & {path.stem, *_declared(path), *facts_of(path).strings}]


@cache
def _declared(path: Path) -> frozenset[str]:
    return frozenset(node.name for node in tree_of(path).body if isinstance(node, DEFINITIONS) and node.decorator_list)


def is_declaration(path: Path) -> bool:
    """Return whether a file declares content, so that each name in it is read by itself."""
    return is_content(path) and path.name != "__init__.py"
