"""Render the results as HTML tables. On a phone, each row becomes a block."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from .verdicts import Verdict

LONGEST = 130  # maximum characters of a difference
Row = Mapping[str, Any]


def options_table(rows: Sequence[Row]) -> str:
    """Return a row for each tested option, with its verdict by way of exporting and the difference."""
    return _table(["you pass", *rows[0]["found"]], (_row(_option(row), row["found"], _verdict) for row in rows))


def opsets_table(rows: Sequence[Row]) -> str:
    """Return a row for each requested opset."""
    return _table(["opset", *rows[0]["found"]], (_row(str(row["opset"]), row["found"], _render_opset_cell) for row in rows), "opsets")


def totals(rows: Sequence[Row]) -> str:
    """Return the counts of each verdict by way of exporting, and the ignored options."""
    ways = list(rows[0]["found"])
    counted = {way: Counter(row["found"][way][0] for row in rows) for way in ways}
    shown = [verdict for verdict in Verdict if any(counted[way][verdict] for way in ways)]
    ignored = {way: dict.fromkeys(row["name"] for row in rows if row["found"][way][0] == Verdict.IGNORED) for way in ways}
    body = (
        f'<tr><th scope="row">{escape(way)}</th>'
        + "".join(f'<td data-label="{verdict}">{counted[way][verdict]}</td>' for verdict in shown)
        + f'<td data-label="ignored options">{", ".join(f"<code>{name}</code>" for name in ignored[way])}</td></tr>'
        for way in ways
    )
    return _table(["", *shown, "ignored options"], body, "totals")


def _table(heads: Iterable[str], rows: Iterable[str], kind: str = "") -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return f'<table class="exportlab folds options {kind}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>\n'


def _row(head: str, found: Mapping[str, Any], cell: Any) -> str:
    cells = (f'<td data-label="{escape(way)}">{cell(*there)}</td>' for way, there in found.items())
    return f'<tr><th scope="row">{head}</th>{"".join(cells)}</tr>'


def _option(row: Row) -> str:
    of = f"<small>{escape(row['of'])}</small>" if row["of"] else ""
    return f"<code>{escape(row['option'])}</code>{of}"


def _verdict(verdict: str, differs: str) -> str:
    differs = differs or ("nothing differs" if verdict == Verdict.IGNORED else "")
    return _render_verdict(verdict.replace(" ", "-"), verdict, differs)


def _render_opset_cell(error: str, nodes: str, said: str, runs: str) -> str:
    if not nodes:
        return _render_verdict("refused", "refused", error)
    outcome = _render_verdict("honoured", "right", "") if runs == "right" else _render_verdict("ignored", "does not run", runs)
    return f"{outcome}<small>{escape('; '.join(filter(None, (error, nodes))))}</small>{_small(said)}"


def _render_verdict(kind: str, word: str, text: str) -> str:
    return f'<b class="verdict {kind}">{word}</b>{_small(text)}'


def _small(text: str) -> str:
    return f"<small>{escape(textwrap.shorten(text, LONGEST, placeholder=' …'))}</small>" if text else ""
