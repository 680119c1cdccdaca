"""All checks of a file of operator tests in one export, with an output for each: the quick pass of tier 0. Tier 1 makes them row by row."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
from operators import longer, movable
from rows import Row, rows_of
from torch import nn
from torch.export import Dim

from exportlab import export
from exportlab.verification.difference import difference_of

FILES = sorted((Path(__file__).parent / "ops").glob("test_*.py"))
MOST = 60  # rows in one export


class AtOnce(nn.Module):
    """Every row with its own inputs, one after another."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__()
        self.calls = nn.ModuleList(row.call for row in rows)
        self.counts = [len(row.tensors) for row in rows]

    def forward(self, *tensors: torch.Tensor) -> list[Any]:
        given = iter(tensors)
        return [call(*(next(given) for _ in range(count))) for call, count in zip(self.calls, self.counts, strict=True)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_checks_of_a_file_are_right_in_one_export(path: Path) -> None:
    for (_, dynamic), rows in groupby(sorted(rows_of(path), key=_kind), key=_kind):
        chosen = list(rows)
        for first in range(0, len(chosen), MOST):
            check_at_once(chosen[first : first + MOST], dynamic)


def _kind(row: Row) -> tuple[str, bool]:
    return str(row.options), row.dynamic and row.takes_longer


def check_at_once(rows: Sequence[Row], dynamic: bool) -> None:
    """Export rows as one module, and compare its results; a row that differs at all is verified alone."""
    tensors = tuple(tensor for row in rows for tensor in row.tensors)
    shapes = (tuple(dict.fromkeys(movable(tensor), Dim.AUTO) for tensor in tensors),) if dynamic else None
    module = AtOnce(rows).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = export("to_onnx", module, tensors, dynamic_shapes=shapes, **rows[0].options)
    for given in (tensors, tuple(map(longer, tensors))) if dynamic else (tensors,):
        for row, wanted, found in zip(rows, module(*given), exported(*given), strict=True):
            if difference_of(wanted, found, row.tolerances).problem:
                row.check()
