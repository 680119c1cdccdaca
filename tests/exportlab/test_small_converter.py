"""The small converter of the package is the one that lesson 201 writes, but for its annotations and docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import jupytext
import torch
from torch import nn

from exportlab import small_converter, verify

LESSON = Path(__file__).parents[2] / "tutorials/201_write_a_converter.md"


def functions(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield name and code of each function, without annotations and docstrings."""
    for function in (node for node in body if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.FunctionDef):
                node.returns = None
                node.body = node.body[ast.get_docstring(node) is not None :]
            if isinstance(node, ast.arg):
                node.annotation = None
        yield function.name, ast.unparse(function)


def written_in_the_lesson() -> dict[str, str]:
    """The last version of each function that a cell of the lesson defines at its top level."""
    cells = jupytext.read(LESSON).cells
    return dict(pair for cell in cells if cell.cell_type == "code" for pair in functions(ast.parse(cell.source).body))


def test_it_is_the_converter_that_lesson_201_writes() -> None:
    module = dict(functions(ast.parse(Path(small_converter.__file__).read_text(encoding="utf-8")).body))
    lesson = written_in_the_lesson()
    assert {name: lesson.get(name) for name in module} == module
    assert {"translates", "place", "describe", "walk", "convert", "check_known", "capture", "export", "linear"} <= module.keys()


def test_a_file_of_it_is_right_at_sizes_it_never_saw() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.Softmax(dim=-1)).eval()
    program = small_converter.export(model, (torch.randn(6, 3),), ({0: "batch"},))
    assert verify(program, model, [(torch.randn(rows, 3),) for rows in (6, 9, 1, 0)]).outcome == "ok"
