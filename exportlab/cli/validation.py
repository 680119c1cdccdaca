"""Check the names and files that commands receive. Each error is one line and is raised before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ..exporters import Artifact, get
from ..exporters.session import ProviderError, check_present
from ..files import check_replaceable
from ..target import BadInput
from ..verification.runtime import MissingRuntime, check_onnxruntime, check_runtime

T = TypeVar("T")


def check_exporter(name: str) -> None:
    """Raise `BadInput` if an exporter doesn't exist or can't run here."""
    try:
        get(name)
    except ValueError as error:
        raise BadInput(str(error)) from error


def check_providers(names: Sequence[str]) -> None:
    """Raise `BadInput` if ONNX Runtime is not installed, or if this build doesn't include a provider."""
    try:
        check_onnxruntime()
        check_present(names)
    except (MissingRuntime, ProviderError) as error:
        raise BadInput(str(error)) from error


def check_installed(artifact: Artifact) -> None:
    """Raise `BadInput` if the runtime of an artifact is not installed."""
    try:
        check_runtime(artifact)
    except MissingRuntime as error:
        raise BadInput(str(error)) from error


def check_named(what: str, names: Sequence[str]) -> None:
    """Raise `BadInput` if an option is an empty list."""
    if not names:
        raise BadInput(f"--{what} is empty: give at least one name, or omit the option to use the default")


def check_writable(path: Path) -> None:
    """Raise `BadInput` if a file can't be written. Called before an export, which may take minutes."""
    try:
        check_replaceable(path)
    except OSError as error:
        raise BadInput(str(error)) from error


def write_file(write: Callable[[], object], path: Path) -> None:
    """Write a file. Raises `BadInput` if that fails."""
    try:
        write()
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from error


def read(open_file: Callable[[], T], path: Path) -> T:
    """Return the content of a file. Raises `BadInput` if reading fails."""
    try:
        return open_file()
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error
