"""What a cell of the table opens: what was seen of a run, and of its case the question, the source, and the pages that say more."""

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

FLOOR = "torch.export"  # the exporter whose time is 1
FIGURES = ("outcome", "nodes", "bytes", "weights_bytes", "peak_bytes", "worst")
TEXTS = ("error", "where")
Link = tuple[str, str]  # words, and where they lead: nowhere if that is empty
Linked = Callable[[str], str]  # from a page, as `generated/errors/NAME.html`, to its address


def data(runs: Runs, cases: Iterable[Case], linked: Linked = site.address, pages: Callable[[Case], list[Link]] = lambda case: []) -> str:
    """Return what the panel shows of each case and run, as a script that a page holds.

    Args:
        linked: gives the address of a page of the site; an empty one where there is no way to it.
        pages: gives what to read on after a case.
    """
    return f"window.matrixTexts = {_inert(texts(runs, cases, linked, pages))};\n"


def pack_texts(text: str) -> str:
    """Return `texts` deflated, as a script that a page loads: a page that is opened as a file cannot load anything else."""
    return f'window.matrixPacked = "{b64encode(zlib.compress(text.encode(), 9)).decode()}";\n'


def texts(runs: Runs, cases: Iterable[Case], linked: Linked, pages: Callable[[Case], list[Link]]) -> str:
    """Return the same as JSON."""
    known = {case.name: {**about(case), "pages": pages(case)} for case in cases}
    shown = {one_line("/".join(cell)): describe_run(cell, runs, linked) for cell in runs if cell[0] in known}
    return json.dumps({"cases": known, "runs": shown}, ensure_ascii=False, separators=(",", ":"))


def _inert(script: str) -> str:
    """A script in which no text ends its element, or begins a comment."""
    return script.replace("<", "\\u003c")


def about(case: Case) -> dict[str, Any]:
    """Return a case for its panel: the question and its source, as HTML, and where it stands."""
    source, line = source_of(case)
    return {"doc": marked_up(case.doc), "file": file_of(case), "line": line, "source": highlight_python(source)}


def source_of(case: Case) -> tuple[str, int]:
    """Return the source of the factory of a case, and the line it begins at; no source, at line 1, of what is no function in a file."""
    try:
        lines, line = inspect.getsourcelines(case.factory)
    except (OSError, TypeError):
        return "", 1
    return "".join(lines), line


def highlight_python(source: str) -> str:
    """Return Python as HTML."""
    if not source:
        return ""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(plain(source.expandtabs()), PythonLexer(), HtmlFormatter(nowrap=True))


def marked_up(text: str) -> str:
    """Return a line of a docstring as HTML, what stands in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(one_line(text)))


def describe_run(cell: Cell, runs: Runs, linked: Linked = site.address) -> dict[str, Any]:
    """Return what the panel says of a run, without what was not reached."""
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
    """Return the known error that a record's message is; None where it is none, or has no message."""
    found = [error for error in errors.recognise(record.error or "") if error.stage != "silent"]
    if not found:
        return None
    page = found[0].page
    told = "A known error" if linked(page) else f"A known error, {site.words(page)}"
    return f"{told}: why it happens, and ways past it", linked(page)


def pair_by_round(rounds: Iterable[Record], others: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Return the records of two runs that were made in the same round."""
    by_round = {record.round: record for record in others}
    return [(record, by_round[record.round]) for record in rounds if record.round in by_round]


def ratio(pairs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]], figure: str, base: str) -> float | None:
    """Return the median of one figure over another, to two digits; None where either is missing."""
    both = [(ours.get(figure), theirs.get(base)) for ours, theirs in pairs]
    found = [mine / other for mine, other in both if mine and other]
    return float(f"{median(found):.2g}") if found else None
