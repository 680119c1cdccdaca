"""One model that does not export: the doctor at the command line."""

from __future__ import annotations

from pathlib import Path

from ..doctor import Options
from ..doctor.terminal import run_diagnosis
from .validation import check_exporter, check_named, check_writable


def diagnose(
    target: str, output: Path | None, save: Path | None, seconds: float, memory: float, exporters: tuple[str, ...], train: bool
) -> int:
    """Print the diagnosis, write what is wanted, and return the exit code.

    Raises:
        BadInput: there is no such exporter, or a file cannot be written.
    """
    check_named("exporters", exporters)
    for name in exporters:
        check_exporter(name)
    for path in filter(None, (output, save)):
        check_writable(path)
    return run_diagnosis(target, Options(seconds, memory, exporters, save, train), output)
