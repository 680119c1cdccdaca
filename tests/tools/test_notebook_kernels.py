"""The kernels that run notebooks: what processes print that a cell starts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from notebook_kernels import through_files

CELL = """import subprocess, sys
done = subprocess.run([sys.executable, "-c", "raise ValueError('no')"], capture_output=True, text=True)
print(repr(done.stderr.splitlines()[-1]))"""


def test_a_process_that_a_cell_starts_prints_its_traceback_without_colours() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    with TemporaryDirectory() as folder:  # of a socket, the path has a hundred characters at most
        NotebookClient(notebook, km=through_files(Path(folder), kernel_name="python3")).execute()
    assert [output.text for output in notebook.cells[0].outputs] == ["'ValueError: no'\n"]
