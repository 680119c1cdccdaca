"""The pages of known errors, each written by running it, and the index that finds them by message. Not here: the errors themselves."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import multiprocessing
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

import exportlab
from exportlab.errors import STAGES, Fix, KnownError, fixed, get, recognise, registered, reproduced
from exportlab.errors.known import OutOfDate
from exportlab.messages import first_line
from exportlab.sweep.warm_up import warmed_up
from exportlab.verification.comparison import EXPORTERS

ROOT = Path(__file__).parent.parent
PAGES, PARTS = ROOT / "generated/errors", ROOT / "generated/parts"
SCORER = ROOT / "generated/scorer.js"
LINES, WIDTH = 12, 100  # of a message that are shown
SOURCES = ("requirements.txt", "constraints.txt", "docs/known_errors.py")
MACHINE = (f"{Path(torch.__file__).parents[1]}/", f"{ROOT}/", f"{Path(ast.__file__).parent}/")


def store_errors() -> None:
    """Writes generated/errors/NAME.md for each known error, two at a time, where there is no fresh page, and the parts of docs/errors.md.

    Raises:
        OutOfDate: an error does not happen any more, or its message finds another, or a fix is none.
    """
    forget_stale_pages()
    _write(PARTS / "errors-index.md", index(registered()))
    _write(PARTS / "errors-patterns.html", patterns(registered()))
    _write(SCORER, scorer(registered()))
    missing = [error.name for error in registered() if not (PAGES / f"{error.name}.md").exists()]
    if missing:
        warm_up()
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for done, (name, message, text) in enumerate(pool.imap_unordered(_made_apart, missing), 1):
            _write(PAGES / f"{name}.txt", message)
            _write(PAGES / f"{name}.md", text)
            print(f"known errors... [{done:3}/{len(missing)}] {name}", flush=True)


def warm_up() -> None:
    """What the first export of a process pays for, paid once before the processes are forked."""
    torch.set_num_threads(1)
    exportlab.quiet()
    warmed_up(EXPORTERS)


def forget_stale_pages() -> None:
    """Errors are run again when the package or a pin changed: no page is older than what it was made with."""
    sources = [*sorted((ROOT / "exportlab").rglob("*.py")), *(ROOT / name for name in SOURCES)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = PAGES / "sources.sha256"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(PAGES, ignore_errors=True)
        _write(stamp, digest)


def _made_apart(name: str) -> tuple[str, str, str]:
    """Name, message and page, made in a process of its own: what an error leaves behind in torch's registries ends with it."""
    try:
        message = said(get(name))
        return name, message, page(get(name), message)
    except Exception as error:
        raise OutOfDate(f"{name}: {first_line(error)}") from error


def said(error: KnownError) -> str:
    """The message of an error that has just been reproduced.

    Raises:
        OutOfDate: it does not happen as it says, or the message is recognised as another error.
    """
    message = without_machine(reproduced(error).message)
    found = recognise(message)[0]
    if found is not error:
        raise OutOfDate(f"pasting its message finds {found.name} first")
    return message


def _write(path: Path, text: str) -> None:
    """A file that is written whole, and only when it differs, so that Sphinx does not read it again."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def page(error: KnownError, message: str) -> str:
    """What happens, why, and the ways past it: everything on it has just been run."""
    code = snippets(error)
    parts = [
        f"# {error.title}",
        f"Stage: {{ref}}`{error.stage} <stage-{error.stage}>`, {STAGES[error.stage]}. {_found(error)}",
        "## What you see",
        _fenced(shown(message, error.message), "text"),
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
    return [f"### {number}. {fix.way.capitalize()}", fix.doc, _fenced(code, "python"), _fenced(without_machine(str(fixed(fix))), "text")]


def threads(names: Sequence[str]) -> list[str]:
    """Links to where it is discussed."""
    links = [f"[{name}](https://github.com/{name.replace('#', '/issues/')})" for name in names]
    return ["## Where it is discussed", ", ".join(links)] if links else []


def without_machine(message: str) -> str:
    """A message without this machine's folders and addresses."""
    for folder in MACHINE:
        message = message.replace(folder, "")
    return re.sub(r"0x[0-9a-f]{6,}", "0x…", message)


def shown(message: str, pattern: str) -> str:
    """The first lines of a message, folded, and those that its pattern is found in."""
    match = re.search(pattern, message)
    first, last = (message.count("\n", 0, place) for place in match.span())
    lines = message.splitlines()
    kept = [number for number in range(len(lines)) if number < LINES or first <= number <= last]
    cut = [f"{lines[number]}{'' if number + 1 in (*kept, len(lines)) else chr(10) + '…'}" for number in kept]
    return "\n".join(part for line in "\n".join(cut).splitlines() for part in folded(line))


def folded(line: str) -> list[str]:
    """A line at the width of a page."""
    return textwrap.wrap(line, WIDTH, subsequent_indent="    ", drop_whitespace=False) or [""]


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
            parts.append(f"(stage-{stage})=\n## {stage.capitalize()}: {meaning}\n\n{table}\n")
    names = "\n".join(f"/generated/errors/{error.name}" for error in errors)
    ways = sum(len(error.fixes) for error in errors)
    return f"{len(errors)} known errors, {ways} ways past them.\n\n" + "\n".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


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
    return f'<script type="application/json" id="error-patterns">{safe}</script>\n'


def scorer(errors: Sequence[KnownError]) -> str:
    """The script by which the site's search ranks its results."""
    known = {f"generated/errors/{error.name}": error.message for error in errors}
    return f"const knownErrors = {json.dumps(known, indent=0)};\n" + (ROOT / "docs/scorer.js").read_text(encoding="utf-8")


if __name__ == "__main__":
    store_errors()
