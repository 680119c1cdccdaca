"""What `to_onnx` raises, each with what was wrong, where in the user's code, and what to do."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

INSTALLED = Path(torch.__file__).parents[1]
PACKAGE = f"{Path(__file__).parent}/"
CAPTURE = tuple(f"{PACKAGE}{name}/" for name in ("guards", "trace", "shapes", "validate", "structure", "paths", "strategies", "patches"))
TORCH = f"{INSTALLED / 'torch'}/"  # not any folder of that name: a caller may have one


class ToOnnxError(Exception):
    """Something `to_onnx` refuses to turn into a file; its `stage` is `capture` or `convert`."""

    stage = "convert"


class CaptureError(ToOnnxError):
    """torch.export itself refused the model; its own error is the cause."""

    stage = "capture"


class FrozenDimension(ToOnnxError):
    """A dimension that was asked to be dynamic came out constant, or with a narrower range than asked."""

    stage = "capture"


class MutationError(ToOnnxError):
    """The model changes a buffer or an input, which a file cannot do."""


class UnsupportedOps(ToOnnxError):
    """Some operators have no translation."""


class Untranslated(Exception):
    """There is no translation for an operator, or not for the way it is called; the text is the reason."""


class UntranslatedInside(Untranslated):
    """Some operators inside a sub-graph have no translation; `failures` are their nodes and the reasons."""

    def __init__(self, failures: list[tuple[torch.fx.Node, str]]) -> None:
        super().__init__("operators in its subgraphs have no translation")
        self.failures = failures


class BrokenTranslation(Untranslated):
    """A function of the caller's table failed, so that no other translation may take its place; the text says how."""


class MissingPackage(Exception):
    """A package that a translation needs is not installed; the text says which, and how to install it."""


class NameCollision(ToOnnxError):
    """Names that were asked for are not as many as the values, or not unique."""


class UnsupportedArgument(ToOnnxError, ValueError):
    """An argument asks for something that `to_onnx` does not do; the text says what to do instead."""


class UnsupportedTorch(ToOnnxError):
    """The installed torch is older than those that `to_onnx` supports; the text says which it does."""

    stage = "capture"


class WrongNumbers(ToOnnxError):
    """`verify=True` found the file to compute something other than the model."""


def users_line(node: torch.fx.Node) -> str:
    """Return the innermost line outside torch that the capture kept, `file.py:12 in forward`; else the module that the node is in."""
    frames = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip().startswith("File ")]
    for frame in reversed(frames):
        path, line, function = frame.removeprefix("File ").split(", ")
        if not _inside_torch(path.strip('"')):
            return f"{shown_path(path.strip(chr(34)))}:{line.removeprefix('line ')} {function}"
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return f"module {stack[-1][0]} ({str(stack[-1][1]).rpartition('.')[2]})" if stack else f"node {node.name}"


def shown_path(path: str) -> str:
    """Return the path by package, or from the current folder, where it lies in that; "a cell" for what a notebook ran."""
    if "ipykernel_" in path or path.startswith("<ipython-input"):
        return "a cell of this notebook"
    packages = [parent for parent in Path(path).parents if parent.name == "site-packages"]  # also of an environment that torch is not in
    folder = next((folder for folder in (INSTALLED, *packages, Path.cwd()) if Path(path).is_relative_to(folder)), None)
    return str(Path(path).relative_to(folder)) if folder else path


def line_at(frame: FrameType) -> str:
    """Return `file.py:14 in forward` of a frame."""
    return f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"


def format_value(value: Any) -> str:
    """Return a value as it stands in a message: in one line, and short."""
    short = reprlib.Repr()
    short.maxlevel, short.maxstring, short.maxother = 4, 60, 60
    return " ".join(short.repr(value).split())


def first_sentence(error: BaseException) -> str:
    """Return the first line of an error's text that says something, else its type."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _inside_torch(path: str) -> bool:
    return path.startswith(("torch/", "<eval_with_key>")) or path.startswith(TORCH)


def build_unsupported_error(failures: Iterable[tuple[torch.fx.Node, str]]) -> UnsupportedOps:
    """Return one error for all of them: each operator once, why, and the lines that call it."""
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
    return str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))
