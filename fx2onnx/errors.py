"""The errors that `to_onnx` raises. Each message describes the problem, the line in the user's code, and what to do."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from .compat.operators import OpOverload
from .libraries import INSTALLED, TORCH, is_in, normalise_separators, package_parents


class ToOnnxError(Exception):
    """The model or the call is not supported; `stage` is `capture` or `convert`."""

    stage = "convert"


class CaptureError(ToOnnxError):
    """The model cannot be captured. If torch.export refused it, its error is the cause."""

    stage = "capture"


class InternalError(ToOnnxError):
    """`to_onnx` has a defect: the error behind it, its cause, is not the model's."""


class FrozenDimension(ToOnnxError):
    """A dimension that was requested as dynamic is constant, or its range is narrower than requested."""

    stage = "capture"


class MutationError(ToOnnxError):
    """The model changes a buffer or an input, which an ONNX model cannot do."""


class UnsupportedOps(ToOnnxError):
    """Some operators have no translation."""


class Untranslated(Exception):
    """There is no translation for an operator, or not for the way it is called; the message is the reason."""


class UntranslatedInside(Untranslated):
    """Some operators inside a subgraph have no translation; `failures` are their nodes and the reasons."""

    def __init__(self, failures: list[tuple[torch.fx.Node, str]]) -> None:
        super().__init__("operators in its subgraphs have no translation")
        self.failures = failures


class BrokenTranslation(Untranslated):
    """A function in the caller's table failed. No other translation is tried."""


class MissingPackage(Exception):
    """A package that a translation needs is not installed; the message names it and the command that installs it."""


class NameCollision(ToOnnxError):
    """The number of names differs from the number of values, or the names are not unique."""


class UnsupportedArgument(ToOnnxError, ValueError):
    """An argument has a value that `to_onnx` does not support; the message describes an alternative."""


class UnsupportedTorch(ToOnnxError):
    """The installed torch is older than the versions that `to_onnx` supports; the message lists these."""

    stage = "capture"


class WrongNumbers(ToOnnxError):
    """`verify=True` found that the exported model computes other results than the PyTorch model."""


def users_line(node: torch.fx.Node) -> str:
    """Return the innermost line outside torch in the node's stack trace, as `file.py:12 in forward`, else the module of the node."""
    frames = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip().startswith("File ")]
    for frame in reversed(frames):
        path, line, function = frame.removeprefix("File ").split(", ")
        if not _inside_torch(path.strip('"')):
            return f"{shown_path(path.strip(chr(34)))}:{line.removeprefix('line ')} {function}"
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return f"module {stack[-1][0]} ({str(stack[-1][1]).rpartition('.')[2]})" if stack else f"node {node.name}"


def shown_path(path: str) -> str:
    """Return a path relative to its package or the current folder; "a cell of this notebook" for code of a notebook."""
    if "ipykernel_" in path or path.startswith("<ipython-input"):
        return "a cell of this notebook"
    packages = package_parents(path)  # the environment may be another than torch's
    shown = Path(normalise_separators(path))
    folder = next((folder for folder in (INSTALLED, *packages, Path.cwd()) if shown.is_relative_to(folder)), None)
    return shown.relative_to(folder).as_posix() if folder else path


def line_at(frame: FrameType) -> str:
    """Return `file.py:14 in forward` of a frame."""
    return f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"


def format_value(value: Any) -> str:
    """Return a value for a message: on one line, and shortened."""
    short = reprlib.Repr()
    short.maxlevel, short.maxstring, short.maxother = 4, 60, 60
    return " ".join(short.repr(value).split())


def first_sentence(error: BaseException) -> str:
    """Return the first line of an error's message that is not blank, else its type."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _inside_torch(path: str) -> bool:
    return is_in(path, "torch/", "<eval_with_key>", TORCH)


def build_unsupported_error(failures: Iterable[tuple[torch.fx.Node, str]]) -> UnsupportedOps:
    """Return one error for all failures: each operator once, with the reason and the lines that call it."""
    by_op: dict[tuple[str, str], list[str]] = {}
    for node, reason in failures:
        lines = by_op.setdefault((op_title(node.target), reason), [])
        if users_line(node) not in lines:
            lines.append(users_line(node))
    listed = [f"  {op}: {reason}\n" + "\n".join(f"    called at {line}" for line in at) for (op, reason), at in by_op.items()]
    ops = list(dict.fromkeys(op for op, _ in by_op))
    return UnsupportedOps("\n".join([f"cannot export {', '.join(ops)}", *listed, HOW_TO_TRANSLATE]))


HOW_TO_TRANSLATE = """To add translations, pass custom_translation_table={torch.ops.….default: function}. A function(g, *args) appends
ONNX nodes (g.Add(x, y)) and returns the result. onnxscript functions are accepted, too."""


def op_title(target: Any) -> str:
    """Return `aten.add.Tensor` for an overload, the name for anything else."""
    return str(target) if isinstance(target, OpOverload) else getattr(target, "__name__", str(target))
