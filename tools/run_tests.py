"""Run the tests of some tiers, unless nothing in the checkout has changed since they passed.

usage: run_tests.py [--jobs N] TIER ...

Tier 0 is `make test`, 1 runs in CI as well, 2 is for `make test-all`. tests/tiers.toml has the tier of each file. Lessons are run again and
their outputs compared: two in tier 0, in tier 1 a quarter that changes with each commit and those edited lately, all in tier 2.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from changes import ROOT, digest, environment, is_noted, repository_files, write_note
from lessons import runnable
from to_notebooks import convert
from turns import select_in_turn

NOTES = ROOT / "build/passed"
SMOKE = ("101_module_to_file", "103_shapes_that_move")
NOTEBOOKS = ("-p", "notebook_kernels", "-p", "pythons", "--dist", "loadfile", "--nbval-current-env")
PARTS = 4  # of the lessons; CI runs one of them at each commit


def lessons_of(tier: int) -> list[Path]:
    """Return the stored notebooks that a tier runs, of those that can run here."""
    pairs = runnable()
    if tier == 0:
        return [pair for pair in pairs if pair.stem in SMOKE]
    return pairs if tier == 2 else select_in_turn(pairs, PARTS, lambda pair: (pair, pair.with_suffix(".md"), ROOT / "tools/nbval.cfg"))


def run(tier: int, jobs: str) -> int:
    """Run a tier, and return 0 where it passes or has passed with everything as it is now."""
    note, state = NOTES / f"tier-{tier}", digest(repository_files(), environment())
    if is_noted(note, state):
        print(f"tier {tier}: nothing has changed since it passed")
        return 0
    for title, arguments in steps(tier):
        print(f"tier {tier}: {title}", flush=True)
        if failed := run_pytest(["-n", jobs, *arguments]):
            return failed
    if tier == 2 and (failed := run_benchmarks()):
        return failed
    write_note(note, state)
    return 0


def run_benchmarks() -> int:
    """Run each benchmark with few rounds, which the site does not do; return 0 where all come to their end."""
    print("tier 2: benchmarks, quick", flush=True)
    return subprocess.run([sys.executable, str(ROOT / "tools/bench_pages.py")], cwd=ROOT, check=False).returncode


def steps(tier: int) -> Iterator[tuple[str, list[str]]]:
    """Yield what a tier runs: a title, and the arguments of pytest."""
    yield "tests", ["--tier", str(tier), "--durations", "15"]
    yield "lessons", [*NOTEBOOKS, "--nbval", "--nbval-sanitize-with", "tools/nbval.cfg", *map(name_of, lessons_of(tier))]
    if tier == 2:
        recipes = sorted((ROOT / "gallery").rglob("*.py"))
        yield "recipes, as the notebooks that the site offers", [
            *NOTEBOOKS, "--nbval-lax", *(name_of(convert(recipe.relative_to(ROOT), ROOT / "build/notebooks")) for recipe in recipes)
        ]  # fmt: skip


def name_of(path: Path) -> str:
    """Return a path from the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def run_pytest(arguments: list[str]) -> int:
    """Run pytest; its workers, and the kernels of notebooks, find tools/ on their path."""
    path = os.pathsep.join([str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, check=False).returncode


def main() -> int:
    """Return 0 when every tier passes; stop at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tiers", nargs="+", type=int, choices=(0, 1, 2))
    parser.add_argument("--jobs", default="auto", help="processes that run tests")
    given = parser.parse_args()
    return next((failed for tier in given.tiers if (failed := run(tier, given.jobs))), 0)


if __name__ == "__main__":
    sys.exit(main())
