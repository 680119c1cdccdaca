"""A cell tagged with a Python is compared on that one; on another it is run, and said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import pythons

CELL = {"wrong": "print('now')", "failing": "1 / 0"}


@pytest.mark.parametrize(
    ("kind", "tag", "workers", "said"),
    [
        ("wrong", "python-3.5", "0", "not compared: page.ipynb::Cell 0, whose output is that of python-3.5, not of " + pythons.HERE),
        ("wrong", "python-3.5", "1", "not compared: page.ipynb::Cell 0, whose output is that of python-3.5, not of " + pythons.HERE),
        ("wrong", pythons.HERE, "0", "mismatch 'stdout'"),
        ("failing", "python-3.5", "0", "ZeroDivisionError"),
    ],
)
def test_a_cell_is_compared_on_the_python_that_it_is_tagged_with(tmp_path: Path, kind: str, tag: str, workers: str, said: str) -> None:
    before = nbformat.v4.new_output("stream", name="stdout", text="before\n")
    cell = nbformat.v4.new_code_cell(CELL[kind], metadata={"tags": [tag]}, outputs=[before], execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "page.ipynb")
    environment = os.environ | {"PYTHONPATH": str(Path(pythons.__file__).parent)}
    plugins = ["-p", "notebook_kernels", "-p", "pythons", "--nbval", "--nbval-current-env"]
    command = [sys.executable, "-m", "pytest", "-n", workers, *plugins, "page.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert said in done.stdout
    assert done.returncode == int("not compared" not in said)
