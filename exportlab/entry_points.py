"""Finding what installed packages register by entry point: exporters, cases, known errors; our own as a third party's."""

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
    """What a package registers cannot be used; the message names the entry point."""

    def __init__(self, entry: EntryPoint, why: str) -> None:
        super().__init__(f"entry point {entry.name} = {entry.value} in group {entry.group} {why}")


class Named(Protocol):
    """Anything that is found by its name."""

    @property
    def name(self) -> str:
        """The name, which no other one of its kind has."""


Kind = TypeVar("Kind", bound=Named)


def load_entry_points(group: str) -> Iterator[tuple[EntryPoint, Any]]:
    """Yield the entry points of a group in the order of their names, each with what it stands for.

    Raises:
        BrokenEntryPoint: one cannot be imported.
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
    """Return by name what the functions of a group list: each entry point stands for one that takes nothing and returns a list of `kind`.

    Raises:
        BrokenEntryPoint: one cannot be imported, fails, lists something else, or lists a name that is taken.
    """
    found: dict[str, Kind] = {}
    for entry, function in load_entry_points(group):
        for one in _call_entry_point(entry, function):
            if not isinstance(one, kind):
                raise BrokenEntryPoint(entry, f"lists a {type(one).__name__}, not only what is a {kind.__name__}")
            if one.name in found:
                raise BrokenEntryPoint(entry, f"lists {one.name!r}, a name that is taken")
            found[one.name] = one
    return found


def _call_entry_point(entry: EntryPoint, function: Any) -> list[Any]:
    try:
        return list(function())
    except Exception as error:
        raise BrokenEntryPoint(entry, f"is no function that returns a list: {first_line(error)}") from error
