"""Find the line of the user's code for an error, a message or a captured node."""

from __future__ import annotations

import inspect
import linecache
import re
import sysconfig
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir
import torch

from ..exporters.to_onnx import is_library_file, shown_path, to_onnx
from ..isolation import Failure

STACK = "pkg.torch.onnx.stack_trace"  # metadata key of ONNX nodes
OURS = (str(Path(__file__).parents[1]), str(Path(inspect.getfile(to_onnx)).parent))
STANDARD = sysconfig.get_paths()["stdlib"]
EXPORTERS = (
    "torch",
    "onnx",
    "onnxscript",
    "onnx_ir",
    "onnxruntime",
    "functorch",
    "numpy",
    "sympy",
    "openvino",
    "executorch",
    "multiprocessing",
)
PACKAGE_FOLDERS = ("site-packages", "dist-packages")
AFTER = re.compile(r"is the constant \d+ after ")
OTHER_SIZES = "of the other sizes tried"  # in a note of `to_onnx` about sizes, whose lines are not the cause
COMPILED = "/torchinductor_"  # folder of the code that torch.compile generates
QUOTED = re.compile(r'File "([^"\n]+\.py)", line (\d+)')
COLON = re.compile(r"([^\s\"'()]+\.py):(\d+)")


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's code: `model.py:14`, and its source.

    Attributes:
        file, line: the full path and line number, which are not displayed.
    """

    where: str
    source: str
    file: str = field(default="", repr=False, compare=False)
    line: int = field(default=0, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.where}   {self.source}"


def source_line(file: str, line: int) -> SourceLine:
    """Return a line of a file. Its path is relative to the current folder; outside that folder, only the file name is displayed."""
    shown = shown_path(file)
    where = f"{Path(shown).name if Path(shown).is_absolute() else shown}:{line}"
    return SourceLine(where, linecache.getline(file, line).strip(), file, line)


def find_line_of_failure(failure: Failure | None) -> SourceLine | None:
    """Return the innermost line of the user's code in a traceback, otherwise the last one in the message."""
    if failure is None:
        return None
    return _pick_line((frame.file, frame.line) for frame in failure.frames) or find_line_in_text(failure.message)


def find_note_with_line(failure: Failure) -> tuple[str, SourceLine | None]:
    """Return a note of an error and its line, if the note is more precise than the error itself.

    `to_onnx` first traces real runs of the model. If that fails, it captures the model with torch.export. The note contains the first
    failure, and the error the second one, which names only the line after which a size is constant.
    """
    notes = failure.notes if AFTER.search(failure.error) else ()
    found = ((note, find_line_in_text(note)) for note in notes if OTHER_SIZES not in note)
    return next(((note, place) for note, place in found if place is not None), ("", None))


def own_frames(failure: Failure) -> list[tuple[str, int]]:
    """Return file and line of each frame and each position in the message that is in the user's code, innermost first."""
    named = [(file, int(line)) for pattern in (COLON, QUOTED) for file, line in pattern.findall(failure.message)]
    found = [*named, *((frame.file, frame.line) for frame in failure.frames)]
    found += [(file, int(line)) for note in failure.notes for file, line in COLON.findall(note)]
    return [(_absolute(file), line) for file, line in reversed(found) if is_own(file)]


def find_line_in_text(text: str) -> SourceLine | None:
    """Return the last line of the user's code in a text, written as `File "model.py", line 14` or as `model.py:14`."""
    return _pick_line((file, int(line)) for pattern in (COLON, QUOTED) for file, line in pattern.findall(text))


def find_line_in_locals(error: BaseException | None) -> SourceLine | None:
    """Return the line of the node an exporter was processing when it failed, found among the local variables of its functions."""
    while error is not None:
        for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
            found = next(filter(None, map(_find_line_of_node, frame.f_locals.values())), None)
            if found is not None:
                return found
        error = error.__cause__ or error.__context__
    return None


def _find_line_of_node(value: object) -> SourceLine | None:
    if isinstance(value, torch.fx.Node):
        return find_line_in_text(value.meta.get("stack_trace") or "")
    return find_line_in_text(value.metadata_props.get(STACK, "")) if isinstance(value, ir.Node) else None


def _pick_line(named: Iterable[tuple[str, int]]) -> SourceLine | None:
    """Return the last line in a user's file, otherwise the last one in a library that is not part of an exporter."""
    found = [(_absolute(file), line) for file, line in named if not _is_exporter_file(_absolute(file))]
    own = [pair for pair in found if not is_library_file(pair[0])]
    return source_line(*(own or found)[-1]) if found else None


def is_own(file: str) -> bool:
    """Return whether a file is the user's, and not part of an installed package or of Python."""
    return not is_library_file(_absolute(file)) and not _is_exporter_file(_absolute(file))


def _absolute(file: str) -> str:
    return str(Path(file).absolute())


def _package_of(file: str) -> str:
    """Return the top-level package of a file in site-packages or dist-packages, or an empty string."""
    return next((Path(file).relative_to(parent).parts[0] for parent in Path(file).parents if parent.name in PACKAGE_FOLDERS), "")


def _is_exporter_file(file: str) -> bool:
    if COMPILED in file or file.startswith(OURS):
        return True
    package = _package_of(file)
    return not Path(file).is_file() or package in EXPORTERS or (not package and file.startswith(STANDARD))
