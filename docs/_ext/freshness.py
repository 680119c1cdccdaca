"""Tell what was made from files that have changed since: a digest of all that was read stands beside what was made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from site_files import ROOT, write

PINS = frozenset({ROOT / "requirements.txt", ROOT / "constraints.txt"})


def reads(path: Path) -> frozenset[Path]:
    """Return all files of the repository that a script or module reads, itself among them."""
    code = (*ROOT.glob("exportlab/**/*.py"), *ROOT.glob("fx2onnx/**/*.py"))
    return frozenset({path, *code, *ROOT.glob("benchmarks/data/*.json"), *ROOT.glob("docs/data/*.jsonl")})


def digest(paths: Iterable[Path]) -> str:
    """Return one for the contents of all."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def sources(*makers: Path) -> frozenset[Path]:
    """Return what these scripts and modules read, and the pinned versions of what they import."""
    return PINS.union(*map(reads, makers))


def is_fresh(made: Path, read: Iterable[Path]) -> bool:
    """Return whether a file is there, and nothing that was read for it has changed."""
    stamp = stamp_of(made)
    return made.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == digest(read)


def mark_fresh(made: Path, read: Iterable[Path]) -> None:
    """Note what was read for a file."""
    write(stamp_of(made), digest(read))


def stamp_of(made: Path) -> Path:
    """Return where the digest stands."""
    return made.with_name(f"{made.name}.sha256")
