"""Digests of files: of their bytes where they are read as text, of what is executed where they are code."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from .content import is_content
from .source import docstrings, statements_by_name, tree_of
from .tree import PACKAGES, ROOT, project

SHOWN = (ROOT / "fx2onnx/ops", ROOT / "exportlab/cli")  # whose docstrings a page or a help text shows, as it does those of content
SHOWS = ("__doc__", "getdoc", "getsource")


def combined(paths: Iterable[Path], digest: Callable[[Path], str]) -> list[str]:
    """Return a line for each file: its digest and its place, in the order of the places."""
    return [f"{digest(path)} {path.relative_to(ROOT).as_posix()}" for path in sorted(paths)]


def hashed(lines: Iterable[str]) -> str:
    """Return one digest of all lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def of_text(path: Path) -> str:
    """Return the digest of a file's bytes; "absent" where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "absent"


@cache
def of_code(path: Path) -> str:
    """Return the digest of what a file does: without docstrings that nobody shows, and of pyproject.toml what installs and tests it."""
    if path == ROOT / "pyproject.toml":
        said = project()
        return hashed([json.dumps([said["build-system"], said["project"], said["tool"]["pytest"]], sort_keys=True)])
    if path.suffix == ".py" and _hides_docstrings(path):
        return hashed(_without_docstrings(path))
    return of_text(path)


@cache
def of_part(path: Path, name: str) -> str:
    """Return the digest of the statements that bind a name of a module, their places in the file included, for errors tell them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    statements = statements_by_name(path).get(name, ())
    begins = [min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))]) for s in statements]
    parts = zip(begins, (s.end_lineno for s in statements), strict=True)
    return hashed(f"{begin} {line}" for begin, end in parts for line in lines[begin - 1 : end])


def _hides_docstrings(path: Path) -> bool:
    in_package = path.relative_to(ROOT).parts[0] in PACKAGES
    shown = is_content(path) or any(path.is_relative_to(place) for place in SHOWN)
    return in_package and not shown and not any(word in path.read_text(encoding="utf-8") for word in SHOWS)


def _without_docstrings(path: Path) -> list[str]:
    """The lines of a module, those of its docstrings left out; one with an example stays, for a test runs it."""
    nodes = list(ast.walk(tree_of(path)))
    hidden = docstrings(nodes)
    spans = [node for node in nodes if id(node) in hidden and isinstance(node, ast.Constant) and ">>>" not in str(node.value)]
    left_out = {line for node in spans for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return [line for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if number not in left_out]
