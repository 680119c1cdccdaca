"""Render rows as a table: aligned text in a terminal, HTML in a notebook or on a page."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import Any

from ..checks import must_be, must_be_all, must_end
from ..outcomes import Outcome
from ..printable import one_line, plain

OUTCOME_COLORS: Mapping[str, str] = {outcome: outcome.color for outcome in Outcome}  # the cell also contains the word
SHORT = 14  # texts up to this length stay on one line on narrow pages
WIDTH = 160  # maximum characters per line of text; longer lines are wrapped
GAP = "  "  # between columns


@dataclass(frozen=True)
class Table:
    """A table with a title and rows with the same keys. Prints as text and renders as HTML. Empty columns are left out."""

    rows: tuple[Mapping[str, Any], ...]
    title: str = ""

    def __repr__(self) -> str:
        columns = self._columns()
        cells = [[one_line(row[c]) for c in columns] for row in (dict(zip(columns, columns, strict=True)), *self.rows)]
        widths = _shrink_widths(WIDTH, [max(map(len, column)) for column in zip(*cells, strict=True)])
        return "\n".join([*textwrap.wrap(plain(self.title), WIDTH), *(line for row in cells for line in _lines(row, widths))])

    def _repr_html_(self) -> str:
        columns = self._columns()
        head = "".join(f"<th>{escape(plain(c))}</th>" for c in columns)
        body = "".join(f"<tr>{''.join(_cell(row[c]) for c in columns)}</tr>" for row in self.rows)
        caption = f"<caption>{escape(plain(self.title))}</caption>" if self.title else ""
        return f'<table class="exportlab">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

    def _columns(self) -> list[str]:
        """Return the keys that have a value in some row."""
        return [key for key in (self.rows[0] if self.rows else ()) if any(row[key] != "" for row in self.rows)]


class Tabular(ABC):
    """A base class for objects that display themselves as one table: text when printed, HTML in a notebook or on a page."""

    @abstractmethod
    def _table(self) -> Table:
        """Return the table to display."""

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


def table(rows: Sequence[Mapping[str, Any]], title: str = "") -> Table:
    """Return a table of `rows`, which must have the same keys. Cells with an outcome are coloured.

    Raises:
        TypeError: an argument has the wrong type. ValueError: a row has other keys than the first.
    """
    must_be_all(Mapping, rows=rows)
    must_be(str, title=title)
    must_end(rows=[list(row.values()) for row in rows])
    for row in rows:
        if list(row) != list(rows[0]):
            raise ValueError(f"all rows need the keys {list(rows[0])}, this one has {list(row)}")
    return Table(tuple(rows), title)


def _shrink_widths(width: int, columns: list[int]) -> list[int]:
    """Return the widths of the columns, with the widest reduced until a row fits."""
    left = max(width - len(GAP) * (len(columns) - 1), len(columns))
    while sum(columns) > left:
        widest = max(columns)
        columns = [size - (size == widest) for size in columns]
    return columns


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Return the lines of a row. The longest cell determines their number."""
    folded = [textwrap.wrap(cell, width) if len(cell) > width else [cell] for cell, width in zip(row, widths, strict=True)]
    for line in zip_longest(*folded, fillvalue=""):
        yield GAP.join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: Any) -> str:
    text = plain(value)
    color = OUTCOME_COLORS.get(text)
    style = f' style="border-left: 6px solid {color}; font-weight: 600"' if color else ""
    return f"<td{' class=short' if len(text) <= SHORT else ''}{style}>{escape(text)}</td>"
