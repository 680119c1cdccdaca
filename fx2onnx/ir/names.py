"""Names that are given once."""

from __future__ import annotations


class Names:
    """Names in use in one model; the first to ask for a name gets it, the next one gets it with a number.

    Further names have a `/`, which neither FX names nor the names of parameters have: FX's own `_1` would collide.
    """

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return `name`, or `name/2`, `name/3`, … when it was given before."""
        if name not in self._given:
            self._given.add(name)
            return name
        number = self._next.get(name, 2)
        while f"{name}/{number}" in self._given:
            number += 1
        self._next[name] = number + 1
        return self.unique(f"{name}/{number}")
