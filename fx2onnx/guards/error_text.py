"""Format exceptions that the model raised during the capture, with the line, and with advice where torch's message is unclear."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from ..errors import first_sentence, shown_path
from ..libraries import NUMPY, PACKAGE, TORCH, is_in, normalise_separators

KEY = "a dynamic size is used as a key of a dict, a set or an lru_cache there, and an exported model cannot look it up"
INSTEAD_OF_KEY = (
    "Compute the value in each call, without the cache. Replace a table by conditions, `a if n > 4 else b`, "
    "or by a tensor that you index with the size"
)
NO_GRADIENT = "element 0 of tensors does not require grad"
INSTEAD_OF_NO_GRADIENT = (
    "the inputs of an exported model do not require gradients. Start with x = x.detach().requires_grad_(), under torch.enable_grad()"
)
NUMPY_MENTION = re.compile(r"\bnumpy\b|\bnp\.|\bufunc\b")
INSTEAD_OF_NUMPY = (
    "A tensor or a size is passed to NumPy there, and an exported model cannot call NumPy. Use PyTorch functions, and math for sizes. "
    "If PyTorch has no such function, write a custom operator with torch.library.custom_op and translate it with custom_translation_table"
)
FOUND = re.compile(r"Found <class '(?P<kind>.+)'> in output, which is not a known type")


def said_by(error: BaseException) -> str:
    """Return an exception of the model as text: its type, its message, and the line of the user's code."""
    what = f"{type(error).__name__}: {first_sentence(error)}"
    if result := FOUND.match(str(error)):
        return describe_unregistered_class(result["kind"].rpartition(".")[2])
    if str(error).startswith(NO_GRADIENT):
        return f"{what}{format_error_line(error)}: {INSTEAD_OF_NO_GRADIENT}"
    if NUMPY_MENTION.search(first_sentence(error)):
        return f"{what.rstrip('.')}{format_error_line(error)}: {INSTEAD_OF_NUMPY}."
    if isinstance(error, TypeError) and _hashes_a_size(error):
        return f"{what}{format_error_line(error)}: {KEY}. {INSTEAD_OF_KEY}."
    return f"{what}{format_error_line(error)}"


def format_errors(errors: Mapping[str, str]) -> str:
    """Return errors with the settings at which they occurred, equal ones together."""
    places: dict[str, list[str]] = {}
    for at, told in errors.items():
        places.setdefault(told, []).append(f"at {at}")
    return "; ".join(f"{', '.join(at)}: {told}" for told, at in places.items())


def describe_unregistered_class(kind: str) -> str:
    """Return the message for a result of this class, which is not a pytree."""
    return (
        f"the model returns a {kind}, which is not registered as a pytree. Return a tuple or a dict of its tensors, or register the class "
        f"first: torch.export.register_dataclass({kind}) if it is a dataclass, otherwise torch.utils._pytree.register_pytree_node"
    )


def format_error_line(error: BaseException) -> str:
    """Return ` at file.py:14 in forward`, the innermost line outside torch, NumPy and this package, or an empty string."""
    line = line_among(reversed(traceback.extract_tb(error.__traceback__)))
    return f" at {line}" if line else ""


def line_among(frames: Iterable[traceback.FrameSummary]) -> str:
    """Return `file.py:14 in forward` of the first frame outside torch, NumPy and this package, or an empty string."""
    for frame in frames:
        if not is_in(frame.filename, TORCH, NUMPY, PACKAGE, "<") and "sympy" not in Path(normalise_separators(frame.filename)).parts:
            return f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}"
    return ""


def _hashes_a_size(error: BaseException) -> bool:
    return any(frame.name == "__hash__" and frame.filename == torch.__file__ for frame in traceback.extract_tb(error.__traceback__))
