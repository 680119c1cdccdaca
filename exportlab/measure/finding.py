"""Write the finding of a stored run for its page: figures as SVG in two layouts, and texts and tables as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..show.table import Table
from ..show.themed import render_both, render_themed_svg, title_of
from .layout import NARROW, WIDE, Layout, use_layout
from .tables import Compared

Lines = tuple[str, ...]  # the finding in a sentence, then further findings; without full stops


def write_finding(
    picture: Path, origin: str, lines: Lines, draw: Callable[[], object], tables: Sequence[Table] = (), badge: str = ""
) -> None:
    """Write the figures to .svg files for a page, the current one first, and texts, tables and badge to a .json file."""
    titles, wide = draw_in(WIDE, draw, picture)
    _, narrow = draw_in(NARROW, draw, picture.with_stem(f"{picture.stem}-narrow"))
    for place, both in enumerate(zip(wide, narrow, strict=True)):
        further_picture(picture, place).write_text(render_both(*both), encoding="utf-8")
    first, *others = lines
    told: dict[str, Any] = {"first": first, "others": others, "origin": origin, "titles": titles, "badge": badge}
    told["tables"] = [*map(describe_table, tables)]
    picture.with_suffix(".json").write_text(json.dumps(told, indent=1), encoding="utf-8")


def further_picture(picture: Path, place: int) -> Path:
    """Return the file of one of several figures: `a.svg`, `a-2.svg`, …"""
    return picture.with_stem(f"{picture.stem}-{place + 1}") if place else picture


def describe_table(one: Table) -> dict[str, str]:
    """Return what a page needs of a table: its title, its HTML, and its pivot as HTML if it has one."""
    return {"title": one.title, "html": one._repr_html_(), "pivot": one.pivot_html() if isinstance(one, Compared) else ""}


def draw_in(layout: Layout, draw: Callable[[], object], picture: Path) -> tuple[list[str], list[str]]:
    """Draw figures in a layout. Return their titles and their SVG, the current figure first."""
    from matplotlib import pyplot

    with use_layout(layout):
        draw()
        current = pyplot.gcf()
        figures = [current, *(pyplot.figure(number) for number in pyplot.get_fignums() if number != current.number)]
        svgs = [render_themed_svg(figure, further_picture(picture, place).stem) for place, figure in enumerate(figures)]
        titles = [*map(title_of, figures)]
    pyplot.close("all")
    return titles, svgs
