"""Rows as a table: aligned text in a terminal, HTML in a notebook or on a page."""

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

OUTCOME_COLORS: Mapping[str, str] = {outcome: outcome.color for outcome in Outcome}  # the word stands in the cell all the same
SHORT = 14  # characters that stay on one line, however narrow the page
WIDTH = 160  # characters of a line of text; longer ones are folded
GAP = "  "  # between columns


@dataclass(frozen=True)
class Table:
    """A title and rows of the same keys; prints as text and renders as HTML. A column that is empty throughout is left out."""

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
        """The keys under which any row has something."""
        return [key for key in (self.rows[0] if self.rows else ()) if any(row[key] != "" for row in self.rows)]


class Tabular(ABC):
    """What shows itself as one table: text where it is printed, HTML in a notebook or on a page."""

    @abstractmethod
    def _table(self) -> Table:
        """The table."""

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


def table(rows: Sequence[Mapping[str, Any]], title: str = "") -> Table:
    """Return a table of `rows`, which all have the keys of the first; a cell that holds an outcome is coloured.

    Raises:
        TypeError: an argument is of another kind. ValueError: a row has other keys than the first.
    """
    must_be_all(Mapping, rows=rows)
    must_be(str, title=title)
    must_end(rows=[list(row.values()) for row in rows])
    for row in rows:
        if list(row) != list(rows[0]):
            raise ValueError(f"every row needs the keys {list(rows[0])}, this one has {list(row)}")
    return Table(tuple(rows), title)


def _shrink_widths(width: int, columns: list[int]) -> list[int]:
    """The widths of columns, the widest made narrower until a line holds all of them."""
    left = max(width - len(GAP) * (len(columns) - 1), len(columns))
    while sum(columns) > left:
        widest = max(columns)
        columns = [size - (size == widest) for size in columns]
    return columns


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row in as many lines as its longest cell needs."""
    folded = [textwrap.wrap(cell, width) if len(cell) > width else [cell] for cell, width in zip(row, widths, strict=True)]
    for line in zip_longest(*folded, fillvalue=""):
        yield GAP.join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: Any) -> str:
    text = plain(value)
    color = OUTCOME_COLORS.get(text)
    style = f' style="border-left: 6px solid {color}; font-weight: 600"' if color else ""
    return f"<td{' class=short' if len(text) <= SHORT else ''}{style}>{escape(text)}</td>"
