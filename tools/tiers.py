"""The tier of each file of tests, as tests/tiers.toml has it."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path, PurePosixPath

from turns import select_in_turn

TESTS = Path(__file__).parents[1] / "tests"
TABLE = tomllib.loads((TESTS / "tiers.toml").read_text(encoding="utf-8"))
TIERS = {path: int(tier) for tier, paths in TABLE.items() if tier != "parts" for path in paths}
PARTS: dict[str, int] = TABLE["parts"]


def tier_of(path: Path) -> int:
    """Return the tier of a file of tests: that of the longest path that is named."""
    inside = PurePosixPath(path.relative_to(TESTS).as_posix())
    return next((TIERS[str(part)] for part in (inside, *inside.parents) if str(part) in TIERS), 0)


def runs_in(path: Path, tier: int) -> bool:
    """Return whether a tier runs a file of tests. Tier 1 runs one part of a folder in parts, and tier 2 runs all of its files."""
    folder = path.parent.relative_to(TESTS).as_posix()
    if folder not in PARTS or path.relative_to(TESTS).as_posix() in TIERS:
        return tier_of(path) == tier
    return tier == 2 or (tier == 1 and path in part_of(folder))


@cache
def part_of(folder: str) -> list[Path]:
    """Return the files of a folder in parts that tier 1 runs at this commit."""
    files = sorted((TESTS / folder).glob("test_*.py"))
    return select_in_turn(files, PARTS[folder], lambda file: (file, TESTS.parent / folder / f"{file.stem.removeprefix('test_')}.py"))
