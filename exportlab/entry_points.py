"""Load the exporters, cases and known errors that installed packages, including this one, register as entry points."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeVar

from .messages import first_line


class BrokenEntryPoint(TypeError):
    """A package's entry point cannot be used; the message names the entry point."""

    def __init__(self, entry: EntryPoint, why: str) -> None:
        super().__init__(f"entry point {entry.name} = {entry.value} in group {entry.group} {why}")


class Named(Protocol):
    """An object that is registered by its name."""

    @property
    def name(self) -> str:
        """The name, unique among objects of its type."""


Kind = TypeVar("Kind", bound=Named)


def load_entry_points(group: str) -> Iterator[tuple[EntryPoint, Any]]:
    """Yield the entry points of a group, sorted by name, each with the object that it refers to.

    Raises:
        BrokenEntryPoint: an entry point cannot be imported.
    """
    for entry in find_entry_points(group, tuple(modified_times())):
        try:
            yield entry, entry.load()
        except Exception as error:
            raise BrokenEntryPoint(entry, f"cannot be loaded: {first_line(error)}") from error


@cache
def find_entry_points(group: str, installed: tuple[tuple[str, float], ...]) -> list[EntryPoint]:
    """Return the entry points of a group, sorted; reading them takes 50 ms, so they are read again only when `installed` changes."""
    return sorted(entry_points(group=group))


def modified_times() -> Iterator[tuple[str, float]]:
    """Yield the folders that Python imports from, with the times at which something was installed there or removed."""
    for folder in sys.path:
        with suppress(OSError):
            yield folder, os.stat(folder).st_mtime


def collect_by_name(group: str, kind: type[Kind]) -> dict[str, Kind]:
    """Return the objects that the functions of a group list, by name. Each entry point is a function without arguments.

    Raises:
        BrokenEntryPoint: an entry point cannot be imported or fails, or its list contains another type or a duplicate name.
    """
    found: dict[str, Kind] = {}
    for entry, function in load_entry_points(group):
        for one in _call_entry_point(entry, function):
            if not isinstance(one, kind):
                raise BrokenEntryPoint(entry, f"lists a {type(one).__name__}; each item must be a {kind.__name__}")
            if one.name in found:
                raise BrokenEntryPoint(entry, f"lists {one.name!r}, a name that is already registered")
            found[one.name] = one
    return found


def _call_entry_point(entry: EntryPoint, function: Any) -> list[Any]:
    try:
        return list(function())
    except Exception as error:
        raise BrokenEntryPoint(entry, f"is not a function that returns a list: {first_line(error)}") from error
