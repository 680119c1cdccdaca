"""Build the table of operators on the page of `to_onnx` from the exporter's own registry."""

from __future__ import annotations

from typing import Any

from site_files import PARTS, write
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the table before the pages are read."""
    app.connect("builder-inited", lambda _: write(PARTS / "operators.md", operators_table()))
    return {"parallel_read_safe": True}


def operators_table() -> str:
    """Return all operators with a translation in the exporter, by family, with the docstrings of the translations."""
    from fx2onnx.ops import own_translations, pair_translations

    families: dict[str, dict[Any, list[str]]] = {}
    for target, translation in [*own_translations().items(), *pair_translations().items()]:
        family = translation.__module__.rpartition(".")[2]
        names, name = families.setdefault(family, {}).setdefault(translation, []), getattr(target, "__name__", str(target))
        names += [name] if name not in names else []
    own, pairs = len(own_translations()), len(pair_translations())
    parts = [f"`to_onnx` has its own translation for {own} operators, and for {pairs} of them a translation for complex numbers.\n"]
    return "\n".join([*parts, *(dropdown(family, families[family]) for family in sorted(families))])


def dropdown(family: str, translations: dict[Any, list[str]]) -> str:
    """Return one family as a dropdown."""
    count = sum(map(len, translations.values()))
    rows = [f"| {', '.join(f'`{op}`' for op in ops)} | {one_line(made.__doc__)} |" for made, ops in translations.items()]
    table = ["| operators | becomes |", "| --- | --- |", *rows]
    return "\n".join([f":::{{dropdown}} `ops/{family}.py`: {count}", "", *table, ":::", ""])


def one_line(text: str | None) -> str:
    """Return a docstring as a table cell."""
    return " ".join((text or "").split()).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "\\<")
