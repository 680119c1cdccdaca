"""Turns a script into the notebook that the site offers for download, so that nbval can run it."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

FIRST_CELL = "from exportlab import quiet\n\nquiet()"
INSTALL_CELL = """# {note}
from importlib.util import find_spec

if find_spec("exportlab") is None:
    %pip install -q {packages}"""
NOTE = "Install the packages if they are missing. An installed torch is kept, if it is 2.10 or newer."
FURTHER = {  # modules that some notebooks use, and the packages to install, which the extra `lab` leaves out
    "executorch": "executorch", "onnxruntime_extensions": "onnxruntime-extensions", "onnxslim": "onnxslim", "openvino": "openvino",
    "pandas": "pandas", "sklearn": "scikit-learn",
}  # fmt: skip


def install_cell(requirement: str, code: str, note: str = NOTE) -> str:
    """Return the code that installs what a notebook imports. It has no pins, so that it keeps the torch of Colab.

    Args:
        requirement: exportlab with its extra `lab`, such as `exportlab[lab] @ URL`.
        code: the code of the notebook.
        note: the comment above the code.
    """
    further = [package for module, package in FURTHER.items() if re.search(rf"""(?:^\s*(?:from|import) |["']){module}\b""", code, re.M)]
    return INSTALL_CELL.format(note=note, packages=" ".join([f'"{requirement}"', *further]))


def has_install_cell(notebook: Path) -> bool:
    """Return whether the first code cell of a stored notebook installs the packages."""
    cells = nbformat.read(notebook, as_version=4).cells
    return "%pip install" in next((cell.source for cell in cells if cell.cell_type == "code"), "")


def to_notebook(script: Path) -> nbformat.NotebookNode:
    """Return the cells of a gallery script, in order; prose becomes markdown cells."""
    _, blocks = split_code_and_text_blocks(str(script))
    code = "\n".join(block.content for block in blocks if block.type == "code")
    cells = [
        nbformat.v4.new_code_cell(install_cell("exportlab[lab]", code), id="install"),
        nbformat.v4.new_code_cell(FIRST_CELL, id="first"),
    ]
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
