"""The axes that were asked to be dynamic, held against what the capture made of them. Not here: the capture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

from .errors import CaptureError, FrozenDimension, first_sentence, shown_path, users_line
from .values import expression

PROBES = (*range(1, 70), 127, 128, 1000, 4097)
TORCH_FILES = (
    "_decomp/",
    "_refs/",
    "_prims",
    "_meta_registrations",
    "_subclasses/",
    "_ops.py",
    "_export/",
    "_tensor.py",
    "fx/",
    "nn/",
    "export/",
)
ADVICE = "Export one file for each case, use torch.cond, or accept it:"


@dataclass(frozen=True)
class AskedDim:
    """One axis that was asked to be dynamic: the identity of its tensor, the axis, its name, and the range asked for."""

    tensor: int
    axis: int
    name: str
    least: int = 0
    most: int | None = None
    named: bool = True


def moves(dim: Any) -> bool:
    """Whether this entry of `dynamic_shapes` asks for a dynamic axis."""
    return isinstance(dim, (str, Dim)) or dim is Dim.DYNAMIC


def in_quotes(names: Iterable[str]) -> str:
    """A tuple of names, as one would write it."""
    listed = [f'"{name}"' for name in names]
    return f"({', '.join(listed)}{',' * (len(listed) == 1)})"


def asked_dims(module: nn.Module, args: Any, kwargs: Any, dynamic_shapes: Any) -> list[AskedDim]:
    """Every axis of a tensor that `dynamic_shapes` asks to be dynamic."""
    if not dynamic_shapes:
        return []
    from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path

    combined = _combine_args(module, args, kwargs)
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(combined):
            raise CaptureError(f"dynamic_shapes does not fit the arguments: {len(dynamic_shapes)} entries for {', '.join(combined)}")
        dynamic_shapes = dict(zip(combined, dynamic_shapes, strict=True))
    found: list[AskedDim] = []

    def look(path: Any, leaf: Any, asked: Any) -> None:
        axes = asked.items() if isinstance(asked, dict) else enumerate(asked or ()) if isinstance(leaf, torch.Tensor) else ()
        found.extend(_asked(leaf, axis, dim, path) for axis, dim in axes if moves(dim))

    try:
        _tree_map_with_path(look, combined, dynamic_shapes, tree_name="inputs")
    except Exception as error:
        raise CaptureError(f"dynamic_shapes does not fit the arguments: {first_sentence(error)}") from error
    return found


def _asked(leaf: torch.Tensor, axis: int, dim: Any, path: Any) -> AskedDim:
    if isinstance(dim, str):
        return AskedDim(id(leaf), axis, dim)
    if isinstance(dim, Dim):
        return AskedDim(id(leaf), axis, dim.__name__, getattr(dim, "min", 0), getattr(dim, "max", None))
    return AskedDim(id(leaf), axis, f"axis {axis} of {pytree.keystr(path).strip('[]').strip(chr(39))}", named=False)


def symbol_of(program: torch.export.ExportedProgram, given: Sequence[Any], dim: AskedDim) -> Any:
    """The size that the capture has for this axis: an integer or an expression; None when the tensor is no input."""
    node = _input_of(program, given, dim)
    value = node.meta.get("val") if node is not None else None
    return expression(value.shape[dim.axis]) if isinstance(value, torch.Tensor) else None


def _input_of(program: torch.export.ExportedProgram, given: Sequence[Any], dim: AskedDim) -> torch.fx.Node | None:
    names = program.graph_signature.user_inputs
    position = next((i for i, leaf in enumerate(given) if id(leaf) == dim.tensor), None)
    if position is None or position >= len(names):
        return None
    return next((node for node in program.graph.nodes if node.name == names[position]), None)


def what_became_constant(program: torch.export.ExportedProgram, given: Sequence[Any], asked: Sequence[AskedDim]) -> tuple[str, list[str]]:
    """Of a capture in which every axis may become constant: which did and at which line, and their names."""
    lines = {str(number): _place(sloc) for sloc, number in _specialised(program)}
    told: dict[str, None] = {}
    names: list[str] = []
    for dim in asked:
        size = symbol_of(program, given, dim)
        if isinstance(size, int):
            line = lines.get(str(size)) or users_line(next(iter(_input_of(program, given, dim).users)))
            told[f'"{dim.name}" was asked to be dynamic but is the constant {size} after {line}.'] = None
            names.append(dim.name)
    return " ".join(told), list(dict.fromkeys(names))


def _specialised(program: torch.export.ExportedProgram) -> list[tuple[Any, Any]]:
    environment = shape_environment(program)
    return [(sloc, environment.replacements[symbol]) for symbol, sloc in environment.replacements_slocs.items()] if environment else []


def check_ranges(program: torch.export.ExportedProgram, symbols: Sequence[tuple[AskedDim, Any]], accepted: Sequence[str]) -> None:
    """Holds every axis that was asked to be dynamic against what the capture made of it.

    A test in the caller's own code must hold at every size from one on. One in an installed library need only hold from two on, which is
    what torch.export promises: libraries ask `size > 1` where nothing depends on it.

    Raises:
        FrozenDimension: one is constant, equals another one of a different name, or lost sizes to a branch in Python.
    """
    for dim, found in symbols:
        if dim.name in accepted:
            continue
        asked = f'"{dim.name}" was asked to be dynamic but '
        if isinstance(found, int):
            raise FrozenDimension(f"{asked}is exported as the constant {found}. {ADVICE} accept_ranges={in_quotes([dim.name])}.")
        if other := _forced(dim, found, symbols):
            raise FrozenDimension(
                f'{asked}the capture made it equal to "{other}": their tensors are combined, element by element. '
                f"Give both axes one name, or accept it: accept_ranges={in_quotes([dim.name, other])}."
            )
        if branch := _branch(program, dim, found):
            raise FrozenDimension(f"{asked}{branch} {ADVICE} accept_ranges={in_quotes([dim.name])}.")


def _forced(dim: AskedDim, found: Any, symbols: Sequence[tuple[AskedDim, Any]]) -> str | None:
    others = (o.name for o, size in symbols if size == found and o.named and dim.named and o.name != dim.name)
    return next(others, None)


def _branch(program: torch.export.ExportedProgram, dim: AskedDim, found: Any) -> str | None:
    """The first test in Python code outside torch that holds at the example's size, but not at every size that is promised."""
    environment = shape_environment(program)
    for guard in environment.guards if environment else ():
        if guard.expr.free_symbols != getattr(found, "free_symbols", None) or len(guard.expr.free_symbols) != 1:
            continue
        place = _place(guard.sloc)
        own = place is not None and ("site-packages" not in _file(guard.sloc) or place.startswith("a forward"))
        sizes = [n for n in PROBES if dim.least <= n <= (dim.most or n)]
        if place and not all(_holds(guard.expr, n, own) for n in sizes):
            return f"{_range_text(dim, guard.expr)} is exported: the test at {place} chose one branch."
    return None


def _range_text(dim: AskedDim, test: Any) -> str:
    from torch.utils._sympy.printers import PythonPrinter

    symbol = next(iter(test.free_symbols))
    text = PythonPrinter().doprint(test.subs(symbol, sympy.Symbol(dim.name, integer=True, nonnegative=True)))
    return "only " + re.sub(r"(\.\d*?)0+\b", r"\1", text.replace("torch.sym_float", "float"))


def _holds(test: Any, size: int, own: bool) -> bool:
    """Whether the test holds at this size; one that compares a size below two there counts only in the caller's own code."""
    symbol = next(iter(test.free_symbols))
    small = any(side.subs(symbol, size) <= 1 for side in test.args if side.free_symbols) if isinstance(test, sympy.Rel) else size < 2
    return (small and not own) or bool(test.subs(symbol, size))


def _file(sloc: Any) -> str:
    return str(getattr(getattr(sloc, "framework_loc", None), "filename", None) or sloc)


def _place(sloc: Any) -> str | None:
    """`file.py:14 in forward` of a guard that Python code outside torch caused; None when an operator of torch did."""
    frame = getattr(sloc, "framework_loc", None)
    text = str(sloc).strip("()")
    if _file(sloc).endswith("torch/nn/modules/module.py"):  # it only calls forward, so the test stands there
        return "a forward without a file"
    if "/torch/" in _file(sloc) or text.startswith(TORCH_FILES):
        return None
    return f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}" if hasattr(frame, "filename") else text


def shape_environment(program: torch.export.ExportedProgram) -> Any:
    """The `ShapeEnv` of the capture; None when it has none."""
    for node in program.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None and mode.shape_env is not None:
            return mode.shape_env
    return None
