"""Runs the tests of some stages as far as what they read has changed since they passed.

usage: run_stale.py [--jobs N] [--notebooks FOLDER ...] [--exporters NAMES] STAGE ...

The stages are lessons, recipes, errors, pytest and matrix. What passed is noted in build/stamps/STAGE, item by item.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from expected import EXPECTED, covering, from_csv
from stale import ROOT, digest, state
from stale.content import CATALOGUE, ZOO, modules
from stale.reading import content
from stamps import Stamps, State

BUILD = ROOT / "build"
TOOLS = ROOT / "tools"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor} Python"
MAKES_ERRORS = ROOT / "docs/_ext/known_errors.py"


@dataclass(frozen=True)
class Options:
    """What the command line says.

    Args:
        jobs: how many processes run tests, as pytest-xdist takes it.
        notebooks: the folders whose scripts are recipes.
        exporters: those that the matrix is looked at by.
    """

    jobs: str
    notebooks: Sequence[str]
    exporters: Sequence[str]


@dataclass(frozen=True)
class Stage:
    """Items that are tested alike.

    Args:
        called: what they are, in words.
        items: what there is, each with what it reads now.
        run: runs some of them, notes each that passes, and returns 0 when all did.
    """

    called: str
    items: Callable[[Options], dict[str, State]]
    run: Callable[[Sequence[str], Stamps, Options], int]


def name_of(path: Path) -> str:
    """Return a path as pytest names it: from the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def lessons(_: Options) -> dict[str, State]:
    """Return the stored pairs of the lessons that can run here."""
    from lessons import runnable

    return {name_of(pair): state(pair, TOOLS / "nbval.cfg", TOOLS / "kernels.py", TOOLS / "pythons.py") for pair in runnable()}


def run_lessons(items: Sequence[str], stamps: Stamps, options: Options) -> int:
    """Run notebooks, and compare every output."""
    return by_nbval(["--nbval", "--nbval-sanitize-with", "tools/nbval.cfg", *items], stamps.keep, options)


def recipes(options: Options) -> dict[str, State]:
    """Return the scripts of the folders that are asked for."""
    scripts = [path for folder in options.notebooks for path in sorted((ROOT / folder).rglob("*.py"))]
    return {name_of(script): state(script, TOOLS / "to_notebooks.py", TOOLS / "kernels.py") for script in scripts}


def run_recipes(items: Sequence[str], stamps: Stamps, options: Options) -> int:
    """Run scripts as the notebooks that the site offers for download."""
    from to_notebooks import convert

    made = {name_of(convert(Path(item), BUILD / "notebooks")): item for item in items}
    return by_nbval(["--nbval-lax", *made], lambda notebook: stamps.keep(made[notebook]), options)


def by_nbval(arguments: Sequence[str], passed: Callable[[str], None], options: Options) -> int:
    """Run notebooks by nbval, each in one process from its first cell to its last."""
    return by_pytest(["-p", "kernels", "-p", "pythons", "--dist", "loadfile", "--nbval-current-env", *arguments], passed, options)


def tests(_: Options) -> dict[str, State]:
    """Return the files of tests."""
    return {name_of(file): state(file) for file in sorted((ROOT / "tests").rglob("test_*.py"))}


def run_tests(items: Sequence[str], stamps: Stamps, options: Options) -> int:
    """Run files of tests, and name the slowest."""
    return by_pytest(["--durations", "25", *items], stamps.keep, options)


def by_pytest(arguments: Sequence[str], passed: Callable[[str], None], options: Options) -> int:
    """Run pytest in this process; its workers, and the kernels of notebooks, find tools/ on their path."""
    import pytest
    from passing import Passing

    find_modules_in(TOOLS)
    return int(pytest.main(["-n", options.jobs, *arguments], plugins=[Passing(passed)]))


def find_modules_in(*folders: Path) -> None:
    """Let processes that are started from here import from some folders, before any other."""
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])


def errors(_: Options) -> dict[str, State]:
    """Return the modules of known errors."""
    known = sorted(module for module in modules(CATALOGUE) if module.name != "__init__.py")
    return {name_of(module): (*state(module), f"{digest([MAKES_ERRORS])} {name_of(MAKES_ERRORS)}") for module in known}


def run_errors(items: Sequence[str], stamps: Stamps, _: Options) -> int:
    """Run those whose pages are stale, as the site does, and write the pages."""
    code = f"import {MAKES_ERRORS.stem}; {MAKES_ERRORS.stem}.store_errors()"
    find_modules_in(TOOLS, MAKES_ERRORS.parent)
    done = subprocess.run([sys.executable, "-c", code], check=False)
    for item in items if done.returncode == 0 else ():
        stamps.keep(item)
    return done.returncode


def matrix(options: Options) -> dict[str, State]:
    """Return the cases that show every outcome; each reads its file, the machinery of a sweep, and what is expected of it."""
    stored = from_csv(EXPECTED.read_text(encoding="utf-8"))
    expected = {run: outcome for run, outcome in stored.items() if run[1] in options.exporters}
    machinery = (ROOT / "exportlab/sweep/runner.py", ROOT / "exportlab/sweep/worker.py")
    found = {case: state(*machinery, *content(ZOO, [case])) for case in covering(expected)}
    for case, exporter, mode in expected:
        if case in found:
            found[case] += (f"{expected[case, exporter, mode]} {EXPECTED.name}: {case}, {exporter}, {mode}",)
    return found


def run_matrix(items: Sequence[str], stamps: Stamps, options: Options) -> int:
    """Sweep cases, and compare their outcomes with those that are expected."""
    from expected_matrix import check, runnable, stored

    names = runnable(options.exporters)
    return min(1, check(stored(names), items, names, stamps.keep))


STAGES = {
    "lessons": Stage("lessons", lessons, run_lessons),
    "recipes": Stage("recipes", recipes, run_recipes),
    "errors": Stage("known errors", errors, run_errors),
    "pytest": Stage("files of tests", tests, run_tests),
    "matrix": Stage("cases of the matrix", matrix, run_matrix),
}


def run(name: str, options: Options) -> int:
    """Run what is stale of a stage, and say what and why; return 0 when all of it passes.

    It runs in a process of its own, for what a run of pytest leaves behind.
    """
    stage = STAGES[name]
    stamps = Stamps(BUILD / "stamps" / name, {item: (*read, PYTHON) for item, read in stage.items(options).items()})
    stale = stamps.stale()
    why = f" run: {stamps.reason()}" if stale else ", nothing to run"
    print(f"{name}: {len(stale)} of {len(stamps.now)} {stage.called}{why}", flush=True)
    return apart(stage, stale, stamps, options) if stale else 0


def apart(stage: Stage, stale: Sequence[str], stamps: Stamps, options: Options) -> int:
    """Run a stage in a forked process, which knows all that this one has read, and return its exit status."""
    process = multiprocessing.get_context("fork").Process(target=lambda: sys.exit(stage.run(stale, stamps, options)))
    process.start()
    process.join()
    return process.exitcode or 0


def main() -> int:
    """Return 0 when everything passes, or has passed as it is now; stop at the first stage that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stages", nargs="+", choices=STAGES)
    parser.add_argument("--jobs", default="auto", help="processes that run tests")
    parser.add_argument("--notebooks", default="gallery", type=str.split, help="folders whose scripts are recipes")
    parser.add_argument("--exporters", default="to_onnx", type=lambda names: names.split(","), help="of the matrix, separated by commas")
    asked = parser.parse_args()
    options = Options(asked.jobs, asked.notebooks, asked.exporters)
    os.chdir(ROOT)
    return next((failed for stage in asked.stages if (failed := run(stage, options))), 0)


if __name__ == "__main__":
    sys.exit(main())
