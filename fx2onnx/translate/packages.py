"""Optional packages that only some translations need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import MissingPackage


@contextmanager
def needed_package(name: str, needed_by: str) -> Iterator[None]:
    """Raise a `MissingPackage` that names what needs the package, if an import inside the context fails.

    Raises:
        MissingPackage: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingPackage(f"{needed_by} needs the package {name}, which is not installed: pip install {name}") from error
