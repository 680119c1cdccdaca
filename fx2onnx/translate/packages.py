"""Packages that only some translations need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import MissingPackage


@contextmanager
def needed_package(name: str, needed_by: str) -> Iterator[None]:
    """Say what needs a package that is imported inside and is not installed.

    Raises:
        MissingPackage: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingPackage(f"{needed_by} needs the package {name}, which is not installed: pip install {name}") from error
