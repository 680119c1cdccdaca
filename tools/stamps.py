"""What passed, and what it read when it did: a stamp for each item of a stage. An item without a stamp, or with another, runs again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

State = tuple[str, ...]
"""A line for each thing that an item reads: a digest, a space, its name."""
NAMED = 3  # of the files that changed


class Stamps:
    """The stamps of one stage, in a folder of their own.

    Args:
        now: what each item reads now. It is computed before an item runs: what changes meanwhile makes it stale again.
    """

    def __init__(self, folder: Path, now: Mapping[str, State]) -> None:
        self.folder = folder
        self.now = now

    def stale(self) -> list[str]:
        """Return the items that have to run again."""
        return [item for item, state in self.now.items() if self._kept(item) != state]

    def reason(self) -> str:
        """Return why they have to, in a few words."""
        changed = {name for item in self.stale() for name in differences(self._kept(item), self.now[item])}
        if not changed:
            return "not run before"
        more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
        return f"{', '.join(sorted(changed)[:NAMED])}{more} changed"

    def keep(self, item: str) -> None:
        """Note that an item passed."""
        path = self._path(item)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.new")
        new.write_text("\n".join(self.now[item]), encoding="utf-8")
        new.replace(path)

    def _kept(self, item: str) -> State:
        path = self._path(item)
        return tuple(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()

    def _path(self, item: str) -> Path:
        return self.folder / item.replace("/", ">")


def differences(before: State, now: State) -> set[str]:
    """Return the names of what changed, came or went between two states; nothing where there was none before."""
    then, new = by_name(before), by_name(now)
    return {name for name in then.keys() | new.keys() if then.get(name) != new.get(name)} if before else set()


def by_name(state: State) -> Mapping[str, set[str]]:
    """Return the digests of each name; a file that is both executed and read as text has two."""
    found: dict[str, set[str]] = {}
    for digest, _, name in (line.partition(" ") for line in state):
        found.setdefault(name, set()).add(digest)
    return found
