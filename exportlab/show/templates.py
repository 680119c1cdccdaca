"""Render self-contained pages from templates based on `page.html.j2`. Inserted values are made plain text and escaped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..printable import plain

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(folder: Path, trim: bool = False) -> Environment:
    """Return the Jinja environment of a folder. With `trim`, lines that contain only a tag are removed."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=FileSystemLoader([folder, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) or not isinstance(value, str) else plain(value),
        trim_blocks=trim,
        lstrip_blocks=trim,
        keep_trailing_newline=trim,
    )
    made.filters["plain"] = plain
    return made
