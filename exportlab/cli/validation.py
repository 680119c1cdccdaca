"""What several commands check and do with files and names that they are given: an error is one line, and nothing was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ..exporters import get
from ..exporters.session import ProviderError, check_present
from ..files import check_replaceable
from ..target import BadInput

T = TypeVar("T")


def check_exporter(name: str) -> None:
    """Raise `BadInput` where there is no such exporter, or it cannot run here."""
    try:
        get(name)
    except ValueError as error:
        raise BadInput(str(error)) from error


def check_providers(names: Sequence[str]) -> None:
    """Raise `BadInput` where a provider is not in this ONNX Runtime."""
    try:
        check_present(names)
    except ProviderError as error:
        raise BadInput(str(error)) from error


def check_named(what: str, names: Sequence[str]) -> None:
    """Raise `BadInput` where an option names nothing."""
    if not names:
        raise BadInput(f"--{what} names none: leave it out for the usual ones")


def check_writable(path: Path) -> None:
    """Before minutes are spent on an export whose result cannot be kept."""
    try:
        check_replaceable(path)
    except OSError as error:
        raise BadInput(str(error)) from error


def write_file(write: Callable[[], object], path: Path) -> None:
    """Write a file. Raises `BadInput` where that cannot be done."""
    try:
        write()
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from error


def read(open_file: Callable[[], T], path: Path) -> T:
    """Return what is read of a file. Raises `BadInput` where that cannot be done."""
    try:
        return open_file()
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error
