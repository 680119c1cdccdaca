"""Make small changes of the code, each a fault, and print which test notices it, and its tier: `python tools/code_mutants.py [WORD …]`.

Each of tests/mutants/*.toml is made in a copy of the packages, never here: those of `capture` in the capture, branches and loops, those of
`faults` bring back faults that were fixed. Words choose those whose table, file or description has one of them; all take an hour.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiers import tier_of

ROOT = Path(__file__).parent.parent
TABLES = ROOT / "tests/mutants"
COPIED = ("fx2onnx", "exportlab", "content", "tools", "tests", "pyproject.toml")
SECONDS = 300  # for the tests of one mutant


@dataclass(frozen=True)
class Mutant:
    """One change of a file: what it does in words, the text as it is, the text instead, and the tests that should notice.

    `survives` says why none does, where that is known.
    """

    file: str
    what: str
    old: str
    new: str
    tests: str
    survives: str = ""
    table: str = ""

    def changed(self, folder: Path) -> str:
        """Return the text of its file, changed.

        Raises:
            ValueError: the old text is not in it exactly once.
        """
        text = (folder / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: {self.old!r} is found {text.count(self.old)} times, for the mutant: {self.what}")
        return text.replace(self.old, self.new)


def load_mutants() -> Iterator[Mutant]:
    """Yield the mutants of all tables."""
    for table in sorted(TABLES.glob("*.toml")):
        for mutant in tomllib.loads(table.read_text(encoding="utf-8"))["mutant"]:
            yield Mutant(**mutant, table=table.stem)


def find_failing_test(mutant: Mutant, folder: Path) -> str:
    """Return the first test that fails in a copy in which this change is made; nothing if all pass."""
    file = folder / mutant.file
    own = file.read_text(encoding="utf-8")
    file.write_text(mutant.changed(folder), encoding="utf-8")
    try:
        return first_failure(folder, mutant.tests.split())
    finally:
        file.write_text(own, encoding="utf-8")


def first_failure(folder: Path, tests: Sequence[str]) -> str:
    """Return which of these tests fails first, or that they take too long; nothing if all pass.

    Raises:
        RuntimeError: they could not be run.
    """
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qx",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} seconds"
    failed = [line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode > 1 and not failed:
        raise RuntimeError(done.stdout + done.stderr)
    return failed[0] if failed else ""


def select_mutants(words: Sequence[str]) -> Iterator[Mutant]:
    """Yield the mutants whose table, file or description has one of these words; all if there are none."""
    return (m for m in load_mutants() if not words or any(word in f"{m.table} {m.file} {m.what}" for word in words))


def main(words: Sequence[str]) -> int:
    """Print what became of each mutant; return how many came out otherwise than the table says."""
    mutants, unexpected = list(select_mutants(words)), 0
    tiers: Counter[int | None] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in COPIED:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part)
        if failed := first_failure(folder, sorted({test for mutant in mutants for test in mutant.tests.split()})):
            raise SystemExit(f"without any change: {failed}")
        for mutant in mutants:
            failed = find_failing_test(mutant, folder)
            tiers[tier_of(ROOT / failed.split(" ", 1)[1].split("::")[0]) if "::" in failed else None] += 1
            unexpected += bool(failed) == bool(mutant.survives)
            print(f"{mutant.file}: {mutant.what}: {failed or f'SURVIVES {mutant.survives}'}", flush=True)
    named = ", ".join(f"{count} by tier {tier}" for tier, count in sorted(tiers.items(), key=str) if tier is not None)
    print(f"{named}, {tiers[None]} by no test of {len(mutants)}; {unexpected} otherwise than the table says")
    return unexpected


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
