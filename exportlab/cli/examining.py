"""Run `exportlab doctor`: diagnose a model that fails to export or gives wrong results."""

from __future__ import annotations

from pathlib import Path

from ..doctor import Options
from ..doctor.terminal import run_diagnosis
from .validation import check_exporter, check_named, check_writable


def diagnose(
    target: str, output: Path | None, save: Path | None, seconds: float, memory: float, exporters: tuple[str, ...], train: bool
) -> int:
    """Print the diagnosis, write the report and the model if requested, and return the exit code.

    Raises:
        BadInput: an exporter doesn't exist, or a file can't be written.
    """
    check_named("exporters", exporters)
    for name in exporters:
        check_exporter(name)
    for path in filter(None, (output, save)):
        check_writable(path)
    return run_diagnosis(target, Options(seconds, memory, exporters, save, train), output)
