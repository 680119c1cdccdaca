"""The tier of each file of tests, as tests/tiers.toml has it."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePosixPath

TESTS = Path(__file__).parents[1] / "tests"
TIERS = {path: int(tier) for tier, paths in tomllib.loads((TESTS / "tiers.toml").read_text(encoding="utf-8")).items() for path in paths}


def tier_of(path: Path) -> int:
    """Return the tier of a file of tests: that of the longest path that is named."""
    inside = PurePosixPath(path.relative_to(TESTS).as_posix())
    return next((TIERS[str(part)] for part in (inside, *inside.parents) if str(part) in TIERS), 0)
