"""Describe a node in addition to its operator: its outputs, its module, and the user's source line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..messages import CELL
from .text import fx_annotation, value_annotation

if TYPE_CHECKING:
    import onnx_ir as ir

FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<number>\d+), in \S+\n +(?P<line>[^\n]+)')
NO_STACK = "_empty_nn_module_stack_from_metadata_hook"  # torch writes this if the module is unknown
GENERATED = "<eval_with_key>"  # torch's file name for generated code
LIBRARIES = ("site-packages", "dist-packages")
STACK, NODE = "pkg.torch.onnx.stack_trace", "pkg.torch.onnx.fx_node"


def describe_fx_node(node: torch.fx.Node) -> str:
    """Describe an FX node: its full target, dtype and shape, module, and source line."""
    name = node.name if node.op == "placeholder" else str(node.target)
    module = next(reversed(node.meta.get("nn_module_stack", {}).values()), ("", ""))
    return _lines(name, fx_annotation(node), _module(module[0], str(module[1])), source_line(node.meta.get("stack_trace") or ""))


def describe_ir_node(node: ir.Node) -> str:
    """Describe an ONNX node: its operator with domain, its outputs, and its module and source line if the model contains them."""
    operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    results = [f"{value.name}: {value_annotation(value) or 'no shape in the file'}" for value in node.outputs]
    return _lines(operator, *results, _module_of(node.metadata_props), source_line(node.metadata_props.get(STACK, "")))


def source_line(trace: str) -> str:
    """Return the innermost line of a stack trace that is in user code rather than a library, without the path of its file."""
    own = [frame["line"] for frame in FRAME.finditer(trace) if not set(LIBRARIES) & set(Path(frame["file"]).parts)]
    return own[-1] if own else ""


def placed_line(trace: str) -> str:
    """Return the innermost line of a stack trace outside torch, with its file: `model.py:10  return x @ self.w`. Otherwise return torch's
    line.

    File names are relative to the current folder or the library. For other folders, only the file name is returned.
    """
    frames = [frame for frame in FRAME.finditer(trace) if not frame["file"].startswith(GENERATED)]
    others = [frame for frame in frames if not _to_library_path(frame["file"]).startswith("torch/")]
    return "".join(f"{_shown_file(frame['file'])}:{frame['number']}  {frame['line'].strip()}" for frame in (others or frames)[-1:])


def modules_of(said: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return path and class of each module around a node, outermost first. The model itself has an empty path.

    In the metadata of exporters, entries have the form `: M/l: torch.nn.modules.linear.Linear`. torch.onnx.export appends the node's name.
    """
    scopes = [scope.partition(": ") for scope in said.get("namespace", "").split("/") if ": " in scope]
    modules = scopes[:-1] if NODE in said else scopes
    return [(path, kind.rpartition(".")[2]) for path, _, kind in modules if path != NO_STACK]


def _to_library_path(file: str) -> str:
    """Return the path of a file relative to the folder of installed packages, or "" if it is elsewhere."""
    parts = Path(file).parts
    at = max((place for place, part in enumerate(parts) if part in LIBRARIES), default=-1)
    return "/".join(parts[at + 1 :]) if at >= 0 else ""


def _shown_file(file: str) -> str:
    if CELL.fullmatch(file):
        return "cell"
    here = Path(file)
    return _to_library_path(file) or (str(here.relative_to(Path.cwd())) if here.is_relative_to(Path.cwd()) else here.name)


def _module_of(said: Mapping[str, str]) -> str:
    modules = modules_of(said)
    return _module(*modules[-1]) if modules else ""


def _module(path: str, kind: str) -> str:
    return f"in {path}, {kind.rpartition('.')[2]}" if path else ""


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))
