"""Turns a script into the notebook that the site offers for download, so that nbval can run it."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

FIRST_CELL = "from exportlab import quiet\n\nquiet()"


def to_notebook(script: Path) -> nbformat.NotebookNode:
    """Return the cells of a gallery script, in order; prose becomes markdown cells."""
    _, blocks = split_code_and_text_blocks(str(script))
    cells = [nbformat.v4.new_code_cell(FIRST_CELL, id="first")]
    for number, block in enumerate(blocks):
        new = nbformat.v4.new_code_cell if block.type == "code" else nbformat.v4.new_markdown_cell
        cells.append(new(block.content.strip("\n"), id=f"cell-{number}"))
    return nbformat.v4.new_notebook(cells=cells)


def convert(script: Path, target: Path) -> Path:
    """Write the notebook of a script into a folder, under the script's own name with its folder before it, and return where it is."""
    target.mkdir(parents=True, exist_ok=True)
    notebook = target / re.sub(r"[/\\]", "-", script.with_suffix(".ipynb").as_posix())
    nbformat.write(to_notebook(script), notebook)
    return notebook
