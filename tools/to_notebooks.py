"""Turns the scripts of some folders into the notebooks that the site offers for download, so that nbval can run them.

usage: to_notebooks.py FOLDER ... TARGET
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import nbformat
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

FIRST_CELL = "from exportlab import quiet\n\nquiet()"


def to_notebook(script: Path) -> nbformat.NotebookNode:
    """The cells of a gallery script, in order; prose becomes markdown cells."""
    _, blocks = split_code_and_text_blocks(str(script))
    cells = [nbformat.v4.new_code_cell(FIRST_CELL, id="first")]
    for number, block in enumerate(blocks):
        new = nbformat.v4.new_code_cell if block.type == "code" else nbformat.v4.new_markdown_cell
        cells.append(new(block.content.strip("\n"), id=f"cell-{number}"))
    return nbformat.v4.new_notebook(cells=cells)


def main(folders: list[str], target: Path) -> None:
    """Writes one notebook for each script, under the script's own name with its folder before it."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    scripts = [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    for script in scripts:
        name = re.sub(r"[/\\]", "-", script.with_suffix(".ipynb").as_posix())
        nbformat.write(to_notebook(script), target / name)
    print(f"{len(scripts)} notebooks in {target}")


if __name__ == "__main__":
    main(sys.argv[1:-1], Path(sys.argv[-1]))
