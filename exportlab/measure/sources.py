"""Compute digests of the code that a benchmark measures. Stored runs contain them, so that pages can report that the code has changed.

tests/benchmarks/test_stale_runs.py lists the stored runs that may be older than their code.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

EXPORTER = "fx2onnx"
KEY = "measured"  # key in a run's metadata: the state of the code for each part, as JSON
WHOLE = ""  # a part that stands for the whole run
UNKNOWN = "not stored"

State = dict[str, str]


def collect_states(script: Path, parts: Sequence[str] = ()) -> dict[str, State]:
    """Return the current state of the code for each part of a run: the commit, and digests of the exporter and the script.

    Args:
        parts: models that are measured separately. By default, the whole run is one part.
    """
    now = {"commit": commit(script.parent), **digests(script)}
    return dict.fromkeys(parts or (WHOLE,), now)


def digests(script: Path) -> State:
    """Return digests of the exporter's and the script's code, without comments, docstrings and functions that only display a run."""
    found = {EXPORTER: digest_of_the_exporter()}
    return {**found, script.name: digest_of([script])} if script.is_file() else found


@cache  # reading all files takes seconds, and they don't change while a process runs
def digest_of_the_exporter() -> str:
    """Return the digest of the exporter's code."""
    return digest_of(exporter_files())


def exporter_files() -> list[Path]:
    """Return the files of the installed exporter."""
    spec = find_spec(EXPORTER)
    folders = spec.submodule_search_locations if spec else None
    return sorted(file for folder in folders or () for file in Path(folder).rglob("*.py"))


def digest_of(files: Sequence[Path]) -> str:
    """Return one digest of the code of several files."""
    lines = [f"{file.parent.name}/{file.name} {code_of(file.read_text(encoding='utf-8'))}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def code_of(text: str) -> str:
    """Return a dump of Python code without comments, docstrings, messages, and functions that only display a stored run."""
    tree = ast.parse(text)
    tree.body = [statement for statement in tree.body if not shows_a_run(statement)]
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            node.values = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_prose(node.value):
            node.value = ""
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not is_text(statement)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def is_prose(text: str) -> bool:
    """Return whether a string is text, such as the message of an error, and not a name, or code that another process runs."""
    return any(map(str.isspace, text)) and "import " not in text


def is_text(statement: ast.AST) -> bool:
    """Return whether a statement is only a string, like a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def shows_a_run(statement: ast.stmt) -> bool:
    """Return whether this is a function whose first argument is a `benchmark.Run`. Such functions only print or draw results."""
    arguments = statement.args.args if isinstance(statement, ast.FunctionDef) else []
    return bool(arguments) and isinstance(noted := arguments[0].annotation, ast.expr) and ast.unparse(noted) == "benchmark.Run"


def commit(folder: Path) -> str:
    """Return the checked-out commit of a folder, with a + if files are modified. `UNKNOWN` without git."""

    def told(*command: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *command], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return told("rev-parse", "--short=10", "HEAD") + "+" * bool(told("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


def changes(metadata: Mapping[str, Any], script: Path) -> list[str]:
    """Return what has changed since a run: the exporter, the script, or `UNKNOWN` if the run doesn't contain digests."""
    states = read_states(metadata)
    now = digests(script)
    if not all(state.keys() >= now.keys() for state in states.values()):
        return [UNKNOWN]
    return [name for name in now if any(state[name] != now[name] for state in states.values())]


def read_states(metadata: Mapping[str, Any]) -> dict[str, State]:
    """Return the stored state of each part of a run, or one empty state if none is stored."""
    found: dict[str, State] = json.loads(metadata.get(KEY, "{}"))
    return found or {WHOLE: {}}


def badge(metadata: Mapping[str, Any], script: Path) -> str:
    """Return the note that a page shows above a run that is older than its code, or "" if it is current."""
    if not changes(metadata, script):
        return ""
    date = datetime.fromisoformat(metadata["date"])
    return f"Measured before the code it measures changed: {', '.join(commits(metadata))}, {date.day} {date:%B %Y}"


def commits(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commits at which the parts of a run were measured, without duplicates."""
    seen = dict.fromkeys(state.get("commit", UNKNOWN) for state in read_states(metadata).values())
    for one in seen:
        yield f"commit {one}"
