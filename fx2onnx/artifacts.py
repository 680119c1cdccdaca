"""Artifacts of an export: a report in Markdown, the captured program, a profile."""

from __future__ import annotations

import cProfile
import io
import os
import pstats
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import torch

from .errors import ToOnnxError, UnsupportedArgument, first_sentence, format_value
from .files import atomic_write
from .program import Program

LINES_OF_PROFILE = 30


def _now() -> str:
    return datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")


@dataclass
class Artifacts:
    """The requested artifacts, where to write them, and the results of the export so far."""

    folder: str | os.PathLike[str]
    report: bool = False
    profile: bool = False
    dump: bool = False
    verbose: bool = False
    stamp: str = field(default_factory=_now)
    captured: torch.export.ExportedProgram | None = None
    program: Program | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.folder, (str, os.PathLike)) or "\0" in str(self.folder):
            raise UnsupportedArgument(f"artifacts_dir={format_value(self.folder)}: pass the path of a folder")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Write the requested artifacts at the end of the context, even if the export fails."""
        profiler = cProfile.Profile()
        if self.profile:
            profiler.enable()
        try:
            yield
        except ToOnnxError as error:
            profiler.disable()
            self._report(error, profiler)
            raise
        finally:
            profiler.disable()
        self._report(None, profiler)

    def has_captured(self, program: torch.export.ExportedProgram) -> None:
        """Record the captured program, and write it to `onnx_export_TIME.pt2` if requested."""
        self.captured = program
        self.say(f"captured {len(program.graph.nodes)} nodes")
        if self.dump:
            self._dump(program)

    def _dump(self, program: torch.export.ExportedProgram) -> None:
        with atomic_write(self._path(".pt2")) as draft:
            try:
                torch.export.save(program, draft)
            except OSError:
                raise
            except Exception as error:
                text = f"dump_exported_program=True: torch.export.save cannot save the captured program: {first_sentence(error)}"
                raise UnsupportedArgument(text) from error

    def has_made(self, program: Program) -> None:
        """Record the program that `to_onnx` returns."""
        self.program = program
        sources = ", ".join(f"{source}: {count}" for source, count in program.report.sources.items())
        self.say(f"translated them to {len(program.model.graph)} nodes, operators by source: {sources}")

    def say(self, text: str) -> None:
        """Print a line if `verbose` is set."""
        if self.verbose:
            print("[to_onnx]", text)

    def _path(self, end: str) -> Path:
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"onnx_export_{self.stamp}{end}"
        self.say(f"writes {path}")
        return path

    def _report(self, error: ToOnnxError | None, profiler: cProfile.Profile) -> None:
        profile = _slowest(profiler) if self.profile else ""
        if not self.report:
            print(profile, end="")
            return
        path = self._path(f"_{error.stage if error else 'success'}.md")
        path.write_text("\n\n".join(self._sections(error, profile)) + "\n", encoding="utf-8")
        if error:
            error.add_note(f"The report is in {path}")

    def _sections(self, error: ToOnnxError | None, profile: str) -> Iterator[str]:
        yield "# Report of an export with to_onnx"
        yield f"## {type(error).__name__}\n\n{_format_code_block(str(error))}" if error else "No errors."
        if self.program is not None:
            yield f"## Sources of the translations\n\n{_format_code_block(str(self.program.report))}"
        if self.captured is not None:
            yield f"## Captured program\n\n{_format_code_block(str(self.captured), 'python')}"
        if self.program is not None:
            yield f"## ONNX model\n\n{_format_code_block(str(self.program.model))}"
        if profile:
            yield f"## Profile\n\n{_format_code_block(profile)}"


def _format_code_block(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip()}\n```"


def _slowest(profiler: cProfile.Profile) -> str:
    """Return the slowest calls, with the time of the functions that they call included."""
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("cumulative").print_stats(LINES_OF_PROFILE)
    return text.getvalue()
