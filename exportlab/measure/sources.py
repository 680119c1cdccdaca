"""The code that a benchmark measures, as digests: a stored run has them, so that a page can tell whether that code has changed since.

Not here: which stored runs may be older than their code for now. tests/benchmarks/test_stale_runs.py has that list.
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
KEY = "measured"  # of a run's metadata: what each part of it measured, as JSON
WHOLE = ""  # the part that is the whole run
UNKNOWN = "not stored"

State = dict[str, str]


def collect_states(script: Path, parts: Sequence[str] = ()) -> dict[str, State]:
    """Return what is measured now, for each part of a run: the commit, and the digests of the exporter and of the script.

    Args:
        parts: the models that are measured by themselves; without one, the whole run.
    """
    now = {"commit": commit(script.parent), **digests(script)}
    return dict.fromkeys(parts or (WHOLE,), now)


def digests(script: Path) -> State:
    """Return the digest of the exporter's code and of the script's, without what only a reader sees."""
    found = {EXPORTER: digest_of_the_exporter()}
    return {**found, script.name: digest_of([script])} if script.is_file() else found


@cache  # it takes a second or two to read all files, and they do not change while a process runs
def digest_of_the_exporter() -> str:
    """Return the digest of the exporter's code."""
    return digest_of(exporter_files())


def exporter_files() -> list[Path]:
    """Return the files of the exporter, wherever it is installed."""
    spec = find_spec(EXPORTER)
    folders = spec.submodule_search_locations if spec else None
    return sorted(file for folder in folders or () for file in Path(folder).rglob("*.py"))


def digest_of(files: Sequence[Path]) -> str:
    """Return one digest of the code of several files."""
    lines = [f"{file.parent.name}/{file.name} {code_of(file.read_text(encoding='utf-8'))}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def code_of(text: str) -> str:
    """Return what Python code does: without comments, docstrings, and functions that only show a stored run."""
    tree = ast.parse(text)
    tree.body = [statement for statement in tree.body if not shows_a_run(statement)]
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not is_text(statement)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def is_text(statement: ast.AST) -> bool:
    """Whether a statement is a string alone, as a docstring is."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def shows_a_run(statement: ast.stmt) -> bool:
    """Whether this is a function that takes a `benchmark.Run`: it says or draws what was measured, and measures nothing."""
    arguments = statement.args.args if isinstance(statement, ast.FunctionDef) else []
    return bool(arguments) and isinstance(noted := arguments[0].annotation, ast.expr) and ast.unparse(noted) == "benchmark.Run"


def commit(folder: Path) -> str:
    """Return the commit that a folder is checked out at, with a + where files differ from it; `UNKNOWN` where there is no git."""

    def told(*command: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *command], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return told("rev-parse", "--short=10", "HEAD") + "+" * bool(told("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


def changes(metadata: Mapping[str, Any], script: Path) -> list[str]:
    """Return what has changed since a run was made: the exporter, the script, or that the run does not have what it measured."""
    states = read_states(metadata)
    now = digests(script)
    if not all(state.keys() >= now.keys() for state in states.values()):
        return [UNKNOWN]
    return [name for name in now if any(state[name] != now[name] for state in states.values())]


def read_states(metadata: Mapping[str, Any]) -> dict[str, State]:
    """Return what the parts of a run measured; of a run that does not have it, one empty state."""
    found: dict[str, State] = json.loads(metadata.get(KEY, "{}"))
    return found or {WHOLE: {}}


def badge(metadata: Mapping[str, Any], script: Path) -> str:
    """Return what a page shows above a run that is older than the code it measured; nothing for one that is not."""
    if not changes(metadata, script):
        return ""
    date = datetime.fromisoformat(metadata["date"])
    return f"Measured before the code it measures changed: {', '.join(commits(metadata))}, {date.day} {date:%B %Y}"


def commits(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commits that the parts of a run were measured at, each once."""
    seen = dict.fromkeys(state.get("commit", UNKNOWN) for state in read_states(metadata).values())
    for one in seen:
        yield f"commit {one}"
