"""The file and line of a guard, and whether it is in the user's code, a library or torch."""

from __future__ import annotations

import re
from pathlib import Path
from traceback import FrameSummary

from ..compat.shape_env import SLoc
from ..errors import shown_path
from ..libraries import INSTALLED, PACKAGE, TORCH, is_in, is_library_file, normalise_separators
from .specialization import SpecializedInOperator

AROUND_TORCH = [f"{PACKAGE}patches/{name}.py" for name in ("one_hot", "vmap")]  # these forward torch's guards
TORCH_FILES = (
    *("_decomp/", "_refs/", "_prims", "_meta_registrations", "_subclasses/", "_ops.py"),
    *("_export/", "_tensor.py", "fx/", "nn/", "export/"),
)
USER_LOCATION = re.compile(r"# (?P<file>.+):(?P<line>\d+) in (?P<function>\S+)$")


def is_own(sloc: SLoc, libraries: bool = False) -> bool:
    """Return whether the user's code caused a guard.

    Args:
        libraries: whether installed libraries other than torch count as well.
    """
    line = source_line(sloc)
    if line is None or isinstance(sloc, SpecializedInOperator):
        return False
    return libraries or not is_library_file(_file(sloc)) or line.startswith("a forward")


def is_in_library(sloc: SLoc) -> bool:
    """Return whether an installed library other than torch caused a guard."""
    return is_own(sloc, libraries=True) and not is_own(sloc)


def source_line(sloc: SLoc) -> str | None:
    """Return `file.py:14 in forward` of a guard in Python code outside torch; None for a guard of a torch operator."""
    if (location := _dynamo_location(sloc)) and not location["file"].startswith("torch/"):
        return f"{Path(location['file']).name}:{location['line']} in {location['function']}"
    frame = _frame(sloc)
    text = str(sloc).strip("()")
    if normalise_separators(_file(sloc)).endswith("torch/nn/modules/module.py"):  # it only calls forward, which contains the test
        return "a forward without a source file"
    if is_in(_file(sloc), TORCH) or text.startswith(TORCH_FILES):
        return None
    return f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}" if frame else text


def _file(sloc: SLoc) -> str:
    if location := _dynamo_location(sloc):
        installed = INSTALLED / location["file"]
        return str(installed if installed.exists() else location["file"])
    frame = _frame(sloc)
    if frame and normalise_separators(frame.filename) in AROUND_TORCH:
        return str(INSTALLED / "torch/overrides.py")
    return frame.filename if frame else str(sloc)


def _frame(sloc: SLoc) -> FrameSummary | None:
    """Return the Python frame of the guard; torch may have only a text."""
    return sloc.framework_loc if isinstance(sloc.framework_loc, FrameSummary) else None


def _dynamo_location(sloc: SLoc) -> re.Match[str] | None:
    """Return the line of the model that Dynamo was tracing in a strict capture, with a relative path."""
    frame = _frame(sloc)
    return USER_LOCATION.search(sloc.maybe_user_loc or "") if frame and is_in(frame.filename, f"{TORCH}_dynamo/") else None
