"""Unique names."""

from __future__ import annotations


class Names:
    """The names in use in one model. A name that is already in use gets a number.

    Numbered names contain a `/`, which neither FX names nor parameter names contain: FX's own suffix `_1` would collide.
    """

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return `name`, or `name/2`, `name/3`, … if it is in use."""
        if name not in self._given:
            self._given.add(name)
            return name
        number = self._next.get(name, 2)
        while f"{name}/{number}" in self._given:
            number += 1
        self._next[name] = number + 1
        return self.unique(f"{name}/{number}")
