"""The pages of known errors, each written by running it, and the index that finds them by message. Not here: the errors themselves."""

from __future__ import annotations

import ast
import inspect
import json
import multiprocessing
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

import exportlab
from exportlab.errors import STAGES, Fix, KnownError, catalogue, fixed, reproduced

ROOT = Path(__file__).parent.parent
PAGES, PARTS = ROOT / "generated/errors", ROOT / "generated/parts"
SCORER = ROOT / "generated/scorer.js"
LINES = 14  # of a message that are shown
MACHINE = {f"{Path(torch.__file__).parents[1]}/": "", f"{ROOT}/": "", f"{Path(ast.__file__).parent}/": ""}


def store_errors() -> None:
    """Writes generated/errors/NAME.md for each known error that has no page yet, two at a time, and the parts of docs/errors.md.

    Raises:
        OutOfDate: an error does not happen any more, or a fix is none.
    """
    PAGES.mkdir(parents=True, exist_ok=True)
    _write(PARTS / "errors-index.md", index(catalogue()))
    _write(PARTS / "errors-patterns.html", patterns(catalogue()))
    _write(SCORER, scorer(catalogue()))
    missing = [error.name for error in catalogue() if not (PAGES / f"{error.name}.md").exists()]
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for done, (name, text) in enumerate(pool.imap_unordered(_page_apart, missing), 1):
            _write(PAGES / f"{name}.md", text)
            print(f"known errors... [{done:3}/{len(missing)}] {name}", flush=True)


def _page_apart(name: str) -> tuple[str, str]:
    """A page made in a process of its own: what an error leaves behind in torch's registries ends with it."""
    torch.set_num_threads(1)
    exportlab.quiet()
    return name, page({error.name: error for error in catalogue()}[name])


def _write(path: Path, text: str) -> None:
    """A file that is written whole, and only when it differs, so that Sphinx does not read it again."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def page(error: KnownError) -> str:
    """What happens, why, and the ways past it: everything on it has just been run."""
    message, code = cleaned(reproduced(error).message), snippets(error)
    parts = [
        f"# {error.title}",
        f"Stage: {{ref}}`{error.stage} <stage-{error.stage}>`, {STAGES[error.stage]}. {_found(error)}",
        "## What you see",
        _fenced(message, "text"),
        "## A model that does it",
        _fenced(code.pop("breaks"), "python"),
        "It returns what {doc}`verify </docs/outcomes>` takes: an export, the module that it has to agree with, and samples.",
        "## Why",
        error.why,
        "## Ways past it",
        *(part for number, fix in enumerate(error.fixes, 1) for part in way(number, fix, code[fix.make.__name__])),
        *threads(error.threads),
    ]
    return "\n\n".join(parts) + "\n"


def _found(error: KnownError) -> str:
    if error.stage == "silent":
        return f"`verify` finds it by the check *{error.check}*."
    return f"It still happens with torch {torch.__version__.partition('+')[0]}."


def way(number: int, fix: Fix, code: str) -> list[str]:
    """One way past an error: what to do, the code, and the report of its verification."""
    return [f"### {number}. {fix.way.capitalize()}", fix.doc, _fenced(code, "python"), _fenced(cleaned(str(fixed(fix))), "text")]


def threads(names: Sequence[str]) -> list[str]:
    """Links to where it is discussed."""
    links = [f"[{name}](https://github.com/{name.replace('#', '/issues/')})" for name in names]
    return ["## Where it is discussed", ", ".join(links)] if links else []


def cleaned(message: str) -> str:
    """A message without this machine's folders and addresses, its lines folded, its first ones kept."""
    for folder, shown in MACHINE.items():
        message = message.replace(folder, shown)
    message = re.sub(r"0x[0-9a-f]{6,}", "0x…", message)
    folded = [
        part for line in message.splitlines() for part in textwrap.wrap(line, 110, subsequent_indent="    ", drop_whitespace=False) or [""]
    ]
    return "\n".join([*folded[:LINES], *(["…"] if len(folded) > LINES else [])])


def _fenced(text: str, language: str) -> str:
    return f"````{language}\n{text}\n````"


def snippets(error: KnownError) -> dict[str, str]:
    """The code of an error's module as a reader would type it: by function, each with what stands before it and belongs to it."""
    source = inspect.getsource(inspect.getmodule(error.breaks))
    waiting, found = [], {}
    functions = {"breaks", *(fix.make.__name__ for fix in error.fixes)}
    for statement in ast.parse(source).body[1:-1]:
        waiting.append(_shown(statement, source))
        if isinstance(statement, ast.FunctionDef) and statement.name in functions:
            found[statement.name], waiting = _joined(waiting), []
    return found


def _joined(statements: Iterable[str]) -> str:
    """Definitions apart, imports and assignments together."""
    text = ""
    for statement in filter(None, statements):
        apart = "\n\n\n" if statement.startswith(("class ", "def ", "@")) or text.rpartition("\n")[2].startswith(" ") else "\n"
        text += (apart if text else "") + statement
    return text


def _shown(statement: ast.stmt, source: str) -> str:
    """A statement without what only the catalogue needs: its imports, its types, and a docstring that the page already shows."""
    if isinstance(statement, ast.ImportFrom) and statement.level:
        return "" if statement.level == 2 else imported(statement)
    lines = source.splitlines()[_begin(statement) - 1 : statement.end_lineno]
    if isinstance(statement, ast.FunctionDef):
        if ast.get_docstring(statement) is not None:
            first = statement.body[0]
            del lines[first.lineno - _begin(statement) : first.end_lineno - _begin(statement) + 1]
        lines = [line.replace(") -> Tried:", "):") for line in lines]
    return "\n".join(lines)


def imported(statement: ast.ImportFrom) -> str:
    """A relative import as a reader would write it: from the package where it is public, else from its module."""
    names = [alias.name for alias in statement.names]
    module = "exportlab" if set(names) <= set(exportlab.__all__) else f"exportlab.{statement.module}"
    return f"from {module} import {', '.join(names)}"


def _begin(statement: ast.stmt) -> int:
    return min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])


def index(errors: Sequence[KnownError]) -> str:
    """A table for each stage, the silent one first."""
    parts = []
    for stage, meaning in STAGES.items():
        rows = [f"| {{doc}}`{_cell(e.title)} </generated/errors/{e.name}>` | {len(e.fixes)} |" for e in errors if e.stage == stage]
        if rows:
            table = "\n".join(["| error | ways past it |", "| --- | --- |", *rows])
            parts.append(f"(stage-{stage})=\n### {stage.capitalize()}: {meaning}\n\n{table}\n")
    names = "\n".join(f"/generated/errors/{error.name}" for error in errors)
    return f"{len(errors)} known errors.\n\n" + "\n".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def _cell(title: str) -> str:
    """A title inside a link inside a table."""
    return title.replace("`", "").replace("<", "&lt;").replace("|", "\\|")


def patterns(errors: Sequence[KnownError]) -> str:
    """What the script of the index searches: patterns, titles and addresses, as JSON inside a script element."""
    known = [
        {"pattern": e.message, "title": e.title.replace("`", ""), "stage": e.stage, "page": f"../generated/errors/{e.name}.html"}
        for e in errors
    ]
    safe = json.dumps(known).replace("</", "<\\/")
    return f'<script type="application/json" id="known-errors">{safe}</script>\n'


def scorer(errors: Sequence[KnownError]) -> str:
    """The script by which the site's search ranks its results."""
    known = {f"generated/errors/{error.name}": error.message for error in errors}
    return f"const knownErrors = {json.dumps(known, indent=0)};\n" + (ROOT / "docs/scorer.js").read_text(encoding="utf-8")
