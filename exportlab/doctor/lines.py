"""Find the user's own line behind an error, a message or a captured node."""

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

from ..exporters.to_onnx import shown_path, to_onnx
from ..isolation import Failure

STACK = "pkg.torch.onnx.stack_trace"  # where nodes of ONNX keep it
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
AFTER = re.compile(r"is the constant \d+ after ")
OTHER_SIZES = "of the other sizes that were tried"  # a note of `to_onnx` whose lines are right, and the sizes are not
COMPILED = "/torchinductor_"  # where torch.compile writes the code that it makes
QUOTED = re.compile(r'File "([^"\n]+\.py)", line (\d+)')
COLON = re.compile(r"([^\s\"'()]+\.py):(\d+)")


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's: `model.py:14`, and what stands there.

    Attributes:
        file, line: where it is on this machine, which is shown nowhere.
    """

    where: str
    source: str
    file: str = field(default="", repr=False, compare=False)
    line: int = field(default=0, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.where}   {self.source}"


def source_line(file: str, line: int) -> SourceLine:
    """Return a line of a file, the file as one finds it from the current folder; no other folder of this machine is named."""
    shown = shown_path(file)
    where = f"{Path(shown).name if Path(shown).is_absolute() else shown}:{line}"
    return SourceLine(where, linecache.getline(file, line).strip(), file, line)


def find_line_of_failure(failure: Failure | None) -> SourceLine | None:
    """Return the innermost line of the user's in a traceback, else the last one that the message names."""
    if failure is None:
        return None
    return _pick_line((frame.file, frame.line) for frame in failure.frames) or find_line_in_text(failure.message)


def find_note_with_line(failure: Failure) -> tuple[str, SourceLine | None]:
    """Return the note of an error that names a line of the user's where the error itself does not, and that line; else nothing.

    `to_onnx` runs the model first, and captures it by torch.export only where that is refused. The note holds the first refusal, the
    error the second, which knows only after which line a size is a constant.
    """
    notes = failure.notes if AFTER.search(failure.error) else ()
    found = ((note, find_line_in_text(note)) for note in notes if OTHER_SIZES not in note)
    return next(((note, place) for note, place in found if place is not None), ("", None))


def own_frames(failure: Failure) -> list[tuple[str, int]]:
    """Return file and line of each frame in the user's own code, and of what the message names there; the innermost first."""
    named = [(file, int(line)) for pattern in (COLON, QUOTED) for file, line in pattern.findall(failure.message)]
    found = [*named, *((frame.file, frame.line) for frame in failure.frames)]
    found += [(file, int(line)) for note in failure.notes for file, line in COLON.findall(note)]
    return [(_absolute(file), line) for file, line in reversed(found) if is_own(file)]


def find_line_in_text(text: str) -> SourceLine | None:
    """Return the last line of the user's that a text names, as `File "model.py", line 14` or as `model.py:14`."""
    return _pick_line((file, int(line)) for pattern in (COLON, QUOTED) for file, line in pattern.findall(text))


def find_line_in_locals(error: BaseException | None) -> SourceLine | None:
    """Return the line of the node that an exporter was working on when it raised: the innermost among the variables of its functions."""
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
    """The last line in a file of the user's own; else the last in a library that is not one of the exporters'."""
    found = [(_absolute(file), line) for file, line in named if not _is_exporter_file(_absolute(file))]
    own = [pair for pair in found if "site-packages/" not in pair[0]]
    return source_line(*(own or found)[-1]) if found else None


def is_own(file: str) -> bool:
    """Return whether a file is the user's: of no installed package, and not of Python's own."""
    return "site-packages/" not in _absolute(file) and not _is_exporter_file(_absolute(file))


def _absolute(file: str) -> str:
    return str(Path(file).absolute())


def _is_exporter_file(file: str) -> bool:
    if COMPILED in file or file.startswith(OURS):
        return True
    package = file.rpartition("site-packages/")[2].split("/")[0] if "site-packages/" in file else ""
    return not Path(file).is_file() or package in EXPORTERS or (not package and file.startswith(STANDARD))
