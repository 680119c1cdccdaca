"""Executes each lesson (tutorials/NNN_name.md) and stores its pair (.ipynb) beside it, outputs included.

usage: store_pairs.py [NAME ...]      names as 101_module_to_file; all lessons without one
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from notebook_kernels import through_files
from to_notebooks import install_cell

from exportlab.files import atomic_write

LESSONS = Path(__file__).parent.parent / "tutorials"


def execute_lesson(lesson: Path) -> nbformat.NotebookNode:
    """The lesson as a notebook with its outputs; a cell that raises stops it.

    Cell ids are counted and timings dropped, so that only what changed shows in a diff.
    """
    notebook = jupytext.read(lesson)
    with tempfile.TemporaryDirectory(prefix="kernels-") as folder:
        client = NotebookClient(
            notebook,
            km=through_files(Path(folder), kernel_name="python3"),
            timeout=600,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": LESSONS}},
        )
        client.execute()
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    notebook.metadata.pop("language_info", None)
    return notebook


def store(lesson: Path) -> None:
    """Writes the pair of one lesson."""
    pair = lesson.with_suffix(".ipynb")
    print(f"{lesson.name} → {pair.name}", flush=True)
    notebook = execute_lesson(lesson)
    if address := repository():
        add_install_cell(notebook, address)
    with atomic_write(pair) as draft:
        nbformat.write(notebook, draft)


def repository() -> str:
    """The address of the repository in pyproject.toml, or ""."""
    project = tomllib.loads((LESSONS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project.get("urls", {}).get("repository", "")).rstrip("/")


def add_install_cell(notebook: nbformat.NotebookNode, address: str) -> None:
    """Inserts a first cell that installs from the repository, for Colab; pages hide it and nbval skips it."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    cell = nbformat.v4.new_code_cell(install_cell(f"exportlab[lab] @ git+{address}", code), id="install")
    cell.metadata.tags = ["remove-cell", "nbval-skip"]
    notebook.cells.insert(0, cell)


if __name__ == "__main__":
    wanted = sys.argv[1:]
    for path in sorted(LESSONS.glob("[0-9]*.md")):
        if not wanted or path.stem in wanted:
            store(path)
