"""What is known of a node beside its operator: its results, its module, and the line of the user's source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from .text import fx_annotation, value_annotation

if TYPE_CHECKING:
    import onnx_ir as ir

FRAME = re.compile(r'File "(?P<file>[^"]*)", line \d+, in \S+\n +(?P<line>[^\n]+)')
LIBRARIES = ("site-packages", "dist-packages")
STACK, NODE = "pkg.torch.onnx.stack_trace", "pkg.torch.onnx.fx_node"


def of_fx(node: torch.fx.Node) -> str:
    """Return what is known of an FX node: its target in full, its dtype and shape, its module, its line."""
    name = node.name if node.op == "placeholder" else str(node.target)
    module = next(reversed(node.meta.get("nn_module_stack", {}).values()), ("", ""))
    return _lines(name, fx_annotation(node), _module(module[0], str(module[1])), source_line(node.meta.get("stack_trace") or ""))


def of_ir(node: ir.Node) -> str:
    """Return what is known of an ONNX node: its operator with its domain, its results, its module and its line where the file says them."""
    operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    results = [f"{value.name}: {value_annotation(value) or 'no shape in the file'}" for value in node.outputs]
    return _lines(operator, *results, _module_of(node.metadata_props), source_line(node.metadata_props.get(STACK, "")))


def source_line(trace: str) -> str:
    """Return the innermost line of a stack that is the user's own and not a library's, without the path of its file."""
    own = [frame["line"] for frame in FRAME.finditer(trace) if not set(LIBRARIES) & set(Path(frame["file"]).parts)]
    return own[-1] if own else ""


def _module_of(said: Mapping[str, str]) -> str:
    """The innermost module in what exporters write: `: M/l: torch.nn.modules.linear.Linear`, then maybe the node."""
    scopes = [scope.partition(": ") for scope in said.get("namespace", "").split("/")]
    modules = scopes[:-1] if NODE in said else scopes
    return _module(modules[-1][0], modules[-1][2]) if modules else ""


def _module(path: str, kind: str) -> str:
    return f"in {path}, {kind.rpartition('.')[2]}" if path else ""


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))
