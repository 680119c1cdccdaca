"""Generate the pages of known errors, by running each error and its fixes, and the index that finds a page by its message."""

from __future__ import annotations

import ast
import inspect
import json
import multiprocessing
import re
import textwrap
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch
from freshness import is_fresh, made_of, mark_fresh
from gallery_pages import BEFORE_THE_GALLERY
from site_files import GENERATED, ROOT, write
from sphinx.application import Sphinx

import exportlab
from exportlab.defaults import EXPORTERS
from exportlab.errors import STAGES, KnownError, get, load_known_errors, recognise, reproduce, verify_fix
from exportlab.errors.known import ANY_NUMBERS, QUOTED, OutOfDate, candidates
from exportlab.isolation import run_isolated
from exportlab.patches import operators_read_once
from exportlab.sweep.warm_up import warmed_up

PAGES = GENERATED / "errors"
FIXED_PAGE = "docs/errors.html#fixed-upstream"
FIXED = {  # pattern of a message that the tested versions no longer produce: its row in docs/errors.md
    r"call_function BuiltinVariable\(NotImplementedError\)": "call_function BuiltinVariable(NotImplementedError): masks in transformers",
    r"Encountered autograd state manager op": "Encountered autograd state manager op: torch.no_grad in forward",
}
LINES, WIDTH = 12, 100  # of a message, as shown
SECONDS, BYTES = 300, 16 << 30  # limits for one error
MACHINE = (f"{Path(torch.__file__).parents[1]}/", f"{ROOT}/", f"{Path(ast.__file__).parent}/")


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the pages before sphinx-gallery runs anything: errors run in forked processes, which need a fresh torch."""
    app.connect("builder-inited", lambda _: store_errors(), priority=BEFORE_THE_GALLERY)
    return {"parallel_read_safe": True}


def store_errors() -> None:
    """Write generated/errors/NAME.md for each known error without a fresh page, two at a time, and the parts of docs/errors.md.

    Raises:
        OutOfDate: an error no longer happens, its message finds another error, or a fix doesn't work.
    """
    for name, text in render_index_parts().items():
        write(GENERATED / name, text)
    stale = [error for error in load_known_errors() if not is_fresh(page_of(error), sources_of(error))]
    remove_pages_but({page_of(error) for error in load_known_errors()})
    make_pages(stale)
    for error in set(load_known_errors()).difference(stale):
        check_found(error, page_of(error).with_suffix(".txt").read_text(encoding="utf-8"))


def render_index_parts() -> dict[str, str]:
    """Return the parts that docs/errors.md includes, by file name in generated/."""
    errors = load_known_errors()
    return {"parts/errors-index.md": index(errors), "parts/errors-patterns.html": patterns(errors)}


def page_of(error: KnownError) -> Path:
    """Return the path of its page."""
    return PAGES / f"{error.name}.md"


def sources_of(error: KnownError) -> str:
    """Return the sources of its page."""
    return made_of(Path(inspect.getfile(error.breaks)), Path(__file__))


def remove_pages_but(wanted: set[Path]) -> None:
    """Remove the pages of errors that are no longer known."""
    for page in set(PAGES.glob("*.md")).difference(wanted):
        for made in PAGES.glob(f"{page.stem}.*"):
            made.unlink()


def make_pages(errors: Sequence[KnownError]) -> None:
    """Run these errors, and write their pages."""
    if not errors:
        return
    with operators_read_once():  # by the parent: each process that is forked has what it read
        warm_up()
        run(errors)


def run(errors: Sequence[KnownError]) -> None:
    """Run each error in a separate process, two at a time, and write its page."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        running = [pool.submit(_made_in_a_fork, error.name) for error in errors]
        for done, future in enumerate(as_completed(running), 1):
            name, message, text = future.result()
            page = page_of(get(name))
            write(page.with_suffix(".txt"), message)
            write(page, text)
            mark_fresh(page, sources_of(get(name)))
            print(f"known errors... [{done:3}/{len(errors)}] {name}", flush=True)


def warm_up() -> None:
    """Run the slow first export once, before the processes are forked."""
    torch.set_num_threads(1)
    exportlab.quiet()
    warmed_up(EXPORTERS)


def _made_in_a_fork(name: str) -> tuple[str, str, str]:
    """Return name, message and page, made in a fork of this process, so that changes to torch's registries don't remain.

    It is forked from the main thread of a worker. In a fork of another thread, Python 3.13.0 runs no signal handler, so alarms don't work.
    """
    ended = run_isolated(lambda: _make_page(name), seconds=SECONDS, memory=BYTES)
    if ended.failure is not None:
        raise OutOfDate(f"{name}: {ended.failure.error}")
    return ended.value


def _make_page(name: str) -> tuple[str, str, str]:
    message = reproduce_message(get(name))
    return name, message, page(get(name), message)


def reproduce_message(error: KnownError) -> str:
    """Reproduce an error and return its message.

    Raises:
        OutOfDate: it fails differently than documented, or the message is recognised as another error.
    """
    message = strip_machine_details(reproduce(error).message)
    check_found(error, message)
    return message


def check_found(error: KnownError, message: str) -> None:
    """Check that pasting the message of an error finds that error first.

    Raises:
        OutOfDate: it finds another error.
    """
    found = [*recognise(message), *candidates(message)][0]
    if found is not error:
        raise OutOfDate(f"pasting the message of {error.name} finds {found.name} first")


def page(error: KnownError, message: str) -> str:
    """Return the page of an error, after running its fixes."""
    return compose_page(
        error,
        _fence_code(excerpt_message(message, error.message), "text"),
        [_fence_code(strip_machine_details(str(verify_fix(f))), "text") for f in error.fixes],
    )


def render_draft(error: KnownError, instead: str) -> str:
    """Return the page with a placeholder instead of the output of an execution."""
    return compose_page(error, instead, [instead] * len(error.fixes))


def compose_page(error: KnownError, message: str, reports: Sequence[str]) -> str:
    """Return a page made of the error's text and code, its message, and a report for each fix."""
    code = snippets(error)
    reproducer = code.pop("breaks")
    parts = [
        f"# {error.title}",
        f"Stage: {{ref}}`{error.stage} <stage-{error.stage}>` ({STAGES[error.stage]}). {_found(error)}",
        "## What `verify` reports" if error.stage == "silent" else "## The error message",
        message,
        "## How to fix it",
        "The snippets use the imports and inputs of [the reproducer below](#how-to-reproduce-it). The function in each snippet exports the "
        "fixed model, and {doc}`verify </docs/outcomes>` compares it with the original. Its report follows.",
        *(
            part
            for fix, report in zip(error.fixes, reports, strict=True)
            for part in (f"### {fix.name}", fix.text, _fence_code(code[fix.make.__name__], "python"), report)
        ),
        "## Why it happens",
        error.why,
        "## How to reproduce it",
        _fence_code(reproducer, "python"),
        "`breaks` returns the arguments of {doc}`verify </docs/outcomes>`: the exported model, the PyTorch module to compare it with, and "
        "sample inputs. The first sample is the one used for the export.",
        *threads(error.threads),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _found(error: KnownError) -> str:
    if error.stage == "silent":
        return f"The check *{error.check}* of {{doc}}`verify </docs/outcomes>` detects it."
    return f"Reproduced with PyTorch {torch.__version__.partition('+')[0]}."


def threads(names: Sequence[str]) -> list[str]:
    """Return links to public discussions."""
    links = [f"[{name}](https://github.com/{name.replace('#', '/issues/')})" for name in names]
    return ["## Related issues", ", ".join(links)] if links else []


def strip_machine_details(message: str) -> str:
    """Return a message without local paths and memory addresses."""
    for folder in MACHINE:
        message = message.replace(folder, "")
    return re.sub(r"0x[0-9a-f]{6,}", "0x…", message)


def excerpt_message(message: str, pattern: str) -> str:
    """Return the first lines of a message, wrapped, and the lines that its pattern matches."""
    match = next(re.finditer(pattern, message))
    first, last = (message.count("\n", 0, place) for place in match.span())
    lines = message.splitlines()
    kept = [number for number in range(len(lines)) if number < LINES or first <= number <= last]
    cut = [f"{lines[number]}{'' if number + 1 in (*kept, len(lines)) else chr(10) + '…'}" for number in kept]
    return "\n".join(part for line in "\n".join(cut).splitlines() for part in wrap_line(line))


def wrap_line(line: str) -> list[str]:
    """Wrap a line to the width of the page."""
    return textwrap.wrap(line, WIDTH, subsequent_indent="    ", drop_whitespace=False) or [""]


def _fence_code(text: str, language: str) -> str:
    return f"````{language}\n{text}\n````"


def snippets(error: KnownError) -> dict[str, str]:
    """Return the code of an error's module as a reader would type it: each function with the statements before it that it needs."""
    source = Path(inspect.getfile(error.breaks)).read_text(encoding="utf-8")
    waiting, found = [], {}
    functions = {"breaks", *(fix.make.__name__ for fix in error.fixes)}
    for statement in ast.parse(source).body[1:-1]:
        waiting.append(_render_statement(statement, source))
        if isinstance(statement, ast.FunctionDef) and statement.name in functions:
            found[statement.name], waiting = _join_statements(waiting), []
    return found


def _join_statements(statements: Iterable[str]) -> str:
    """Join statements, with blank lines around definitions."""
    text = ""
    for statement in filter(None, statements):
        apart = "\n\n\n" if statement.startswith(("class ", "def ", "@")) or text.rpartition("\n")[2].startswith(" ") else "\n"
        text += (apart if text else "") + statement
    return text


def _render_statement(statement: ast.stmt, source: str) -> str:
    """Return a statement without the parts that the page doesn't need: imports of known_errors, types, and docstrings of functions."""
    if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("exportlab."):
        return "" if statement.module == "exportlab.errors.known" else render_import(statement)
    lines = source.splitlines()[_begin(statement) - 1 : statement.end_lineno]
    if isinstance(statement, ast.FunctionDef):
        if ast.get_docstring(statement) is not None:
            said = statement.body[0]
            del lines[said.lineno - _begin(statement) : (said.end_lineno or said.lineno) - _begin(statement) + 1]
        lines = [line.replace(") -> Claim:", "):") for line in lines]
    return "\n".join(lines)


def render_import(statement: ast.ImportFrom) -> str:
    """Return an import as a reader would write it: from `exportlab` if the name is public, and otherwise from its module."""
    names = [alias.name for alias in statement.names]
    module = "exportlab" if set(names) <= set(exportlab.__all__) else statement.module
    return f"from {module} import {', '.join(names)}"


def _begin(statement: ast.stmt) -> int:
    return min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])


def index(errors: Sequence[KnownError]) -> str:
    """Return a table for each stage, silent errors first."""
    parts = []
    for stage, meaning in STAGES.items():
        rows = [f"| {{doc}}`{_cell(e.title)} </generated/errors/{e.name}>` | {len(e.fixes)} |" for e in errors if e.stage == stage]
        if rows:
            table = "\n".join(["| error | fixes |", "| --- | --- |", *rows])
            parts.append(f"(stage-{stage})=\n## {stage.capitalize()}: {meaning}\n\n{table}\n")
    names = "\n".join(f"/generated/errors/{error.name}" for error in errors)
    fixes = sum(len(error.fixes) for error in errors)
    return f"{len(errors)} known errors with {fixes} fixes.\n\n" + "\n".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def _cell(title: str) -> str:
    """Escape a title for a link in a table."""
    return title.replace("`", "").replace("<", "&lt;").replace("|", "\\|")


def patterns(errors: Sequence[KnownError]) -> str:
    """Return the data of the search box: patterns, titles and addresses, as JSON in a script element."""
    known = [
        {
            "pattern": e.message, "op": e.op, "kin": e.kin, "wraps": e.wraps, "title": e.title.replace("`", ""), "stage": e.stage,
            "page": f"../generated/errors/{e.name}.html",
        }
        for e in errors
    ]  # fmt: skip
    fixed = [
        {"pattern": pattern, "title": title, "stage": "fixed upstream", "page": f"../{FIXED_PAGE}"} for pattern, title in FIXED.items()
    ]
    told = {"errors": [*known, *fixed], "quoted": QUOTED.pattern, "numbers": ANY_NUMBERS.pattern}
    safe = json.dumps(told).replace("</", "<\\/")
    return f'<script type="application/json" id="error-patterns">{safe}</script>\n'
