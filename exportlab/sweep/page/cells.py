"""Build the details that a cell of the table opens: the results of a run, the question and source of its case, and related pages."""

from __future__ import annotations

import inspect
import json
import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from statistics import median
from typing import Any

from ... import errors, site
from ...cases import Case
from ...diagnostics import names_cause
from ...outcomes import Mark
from ...printable import one_line, plain
from ..changes import find_worst_record
from ..observe import file_of
from ..records import Record
from .counts import Cell, Runs

FLOOR = "torch.export"  # export times are relative to this exporter
FIGURES = ("outcome", "nodes", "bytes", "weights_bytes", "peak_bytes", "worst")
TEXTS = ("error", "where")
Link = tuple[str, str]  # text and address; the address may be empty
Linked = Callable[[str], str]  # maps a page, such as `generated/errors/NAME.html`, to its address


def data(runs: Runs, cases: Iterable[Case], linked: Linked = site.address, pages: Callable[[Case], list[Link]] = lambda case: []) -> str:
    """Return the panel's texts of all cases and runs, as a script to embed in a page.

    Args:
        linked: returns the address of a page of the site, or an empty string if it can't be reached.
        pages: returns the pages to read after a case.
    """
    return f"window.matrixTexts = {_inert(texts(runs, cases, linked, pages))};\n"


def pack_texts(text: str) -> str:
    """Return `texts` compressed, as a script: a page opened from a file can't load other formats."""
    return f'window.matrixPacked = "{b64encode(zlib.compress(text.encode(), 9)).decode()}";\n'


def texts(runs: Runs, cases: Iterable[Case], linked: Linked, pages: Callable[[Case], list[Link]]) -> str:
    """Return the panel's texts as JSON."""
    known = {case.name: {**about(case), "pages": pages(case)} for case in cases}
    shown = {one_line("/".join(cell)): describe_run(cell, runs, linked) for cell in runs if cell[0] in known}
    return json.dumps({"cases": known, "runs": shown}, ensure_ascii=False, separators=(",", ":"))


def _inert(script: str) -> str:
    """Escape `<`, so that a text can't close the script element or start a comment."""
    return script.replace("<", "\\u003c")


def about(case: Case) -> dict[str, Any]:
    """Return the panel's entry of a case: its question and source as HTML, and its file and line."""
    source, line = source_of(case)
    return {"doc": marked_up(case.doc), "file": file_of(case), "line": line, "source": highlight_python(source)}


def source_of(case: Case) -> tuple[str, int]:
    """Return the source of a case's factory and its first line. Return "" and 1 if the source isn't available."""
    try:
        lines, line = inspect.getsourcelines(case.factory)
    except (OSError, TypeError):
        return "", 1
    return "".join(lines), line


def highlight_python(source: str) -> str:
    """Return Python code as highlighted HTML."""
    if not source:
        return ""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(plain(source.expandtabs()), PythonLexer(), HtmlFormatter(nowrap=True))


def marked_up(text: str) -> str:
    """Return a line of a docstring as HTML. Text in backticks becomes code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(one_line(text)))


def describe_run(cell: Cell, runs: Runs, linked: Linked = site.address) -> dict[str, Any]:
    """Return the panel's entry of a run, without empty fields."""
    record = find_worst_record(runs[cell])
    case, _, mode = cell
    found = {
        **{name: getattr(record, name) for name in FIGURES},
        **{name: plain(getattr(record, name) or "") for name in TEXTS},
        "said": [[one_line(line), int(names_cause(line))] for line in record.said],
        "warned": record.warned or None,
        "masked": record.mark is Mark.MASKED or None,
        "was_training": record.was_training or None,
        "failed": [_clean_check(check) for check in record.failed],
        "known": find_known_error(record, linked),
        "export": ratio(
            [(r.seconds, b.seconds) for r, b in pair_by_round(runs[cell], runs.get((case, FLOOR, mode), ()))], "export", "export"
        ),
        "call": ratio([(r.seconds, r.seconds) for r in runs[cell]], "call", "eager"),
    }
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def _clean_check(check: Mapping[str, Any]) -> dict[str, Any]:
    texts = {key: plain(value) if isinstance(value, str) else value for key, value in check.items()}
    return {key: value for key, value in texts.items() if value not in (None, "")}


def find_known_error(record: Record, linked: Linked) -> Link | None:
    """Return a link to the known error that matches a record's message, or None."""
    found = [error for error in errors.recognise(record.error or "") if error.stage != "silent"]
    if not found:
        return None
    page = found[0].page
    text = "A known error" if linked(page) else f"A known error, {site.words(page)}"
    return f"{text}: cause and workarounds", linked(page)


def pair_by_round(rounds: Iterable[Record], others: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Return pairs of records of two runs from the same round."""
    by_round = {record.round: record for record in others}
    return [(record, by_round[record.round]) for record in rounds if record.round in by_round]


def ratio(pairs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]], figure: str, base: str) -> float | None:
    """Return the median ratio of two figures, rounded to two digits. None if either is missing."""
    both = [(ours.get(figure), theirs.get(base)) for ours, theirs in pairs]
    found = [mine / other for mine, other in both if mine and other]
    return float(f"{median(found):.2g}") if found else None
