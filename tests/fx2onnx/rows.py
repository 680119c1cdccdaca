"""The checks of a file of operator tests as rows: what its tests call `check` and `check_both` with, without making the exports."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from operators import Call, check, longer, runs
from torch.utils import _pytree as pytree

from exportlab.cases import Sample

EXPORTS = ("to_onnx", "export", "verify", "nodes_of", "report_of", "check_further", "exported_and_verified")


class _OtherExport(Exception):
    """A test makes an export in another way than by `check`."""


@dataclass(frozen=True)
class Row:
    """One check: a function with its arguments, whether sizes are dynamic, and further options of `check`."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic: bool
    options: dict[str, Any]
    tolerances: Any

    @property
    def call(self) -> Call:
        """The function as a module, whose inputs are the tensors."""
        return Call(self.function, self.args, self.kwargs)

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The inputs."""
        return tuple(leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor))

    @property
    def takes_longer(self) -> bool:
        """Whether eager takes the tensors with their axes made longer."""
        return runs(self.call, Sample(tuple(map(longer, self.tensors))))

    def check(self) -> None:
        """Export and verify this row alone."""
        check(self.function, *self.args, dynamic=self.dynamic, options=self.options, tolerances=self.tolerances, **self.kwargs)


def rows_of(path: Path) -> list[Row]:
    """Return the checks of a file of tests; tests that need a fixture or are marked make none."""
    module = _loaded(path)
    found: list[Row] = []
    with patch.multiple(module, **_recorders(module, found)):
        for name, test in [*vars(module).items()]:
            if name.startswith("test_") and "check" in inspect.getsource(test):
                _collect(name, test, found)
    return found


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"rows_of_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _recorders(module: ModuleType, found: list[Row]) -> dict[str, Callable[..., None]]:
    def record(both: bool) -> Callable[..., None]:
        def called(function: Any, *args: Any, dynamic: bool = False, options: Any = None, tolerances: Any = None, **kwargs: Any) -> None:
            for moves in (False, True) if both else (dynamic,):
                found.append(Row("", function, args, kwargs, moves, dict(options or {}), tolerances))

        return called

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise _OtherExport

    replaced = {"check": record(both=False), "check_both": record(both=True), **dict.fromkeys(EXPORTS, refuse)}
    return {name: function for name, function in replaced.items() if hasattr(module, name)}


def _collect(name: str, test: Callable[..., None], found: list[Row]) -> None:
    """Add the checks of one test, for each set of its parameters."""
    for number, values in enumerate(_parameters(test)):
        if values.keys() != set(inspect.signature(test).parameters):
            return  # a fixture, or arguments that hypothesis draws
        before = len(found)
        torch.manual_seed(0)
        try:
            test(**values)
        except _OtherExport:
            pass
        found[before:] = [_named(row, f"{name}, parameters {number}") for row in found[before:]]


def _named(row: Row, name: str) -> Row:
    return Row(name, row.function, row.args, row.kwargs, row.dynamic, row.options, row.tolerances)


def _parameters(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """Yield the arguments that the `parametrize` marks of a test give; none where there is another mark."""
    marks = getattr(test, "pytestmark", [])
    if any(mark.name != "parametrize" for mark in marks):
        return
    for chosen in itertools.product(*(_values(*mark.args) for mark in marks)):
        yield {name: value for values in chosen for name, value in values.items()}


def _values(names: str | tuple[str, ...], values: Any) -> list[dict[str, Any]]:
    """Return the values of one mark, by name; those with a mark of their own are left out."""
    listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    plain = [getattr(value, "values", value) if hasattr(value, "marks") else value for value in values if not getattr(value, "marks", ())]
    return [dict(zip(listed, value if len(listed) > 1 else [value], strict=True)) for value in plain]
