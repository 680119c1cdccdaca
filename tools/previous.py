"""Sweeps again with another release of one package, in an environment of its own, for the page that says what changed.

usage: previous.py PACKAGE VERSION [--cases NAMES] [--also PACKAGE …]

The packages of this environment stand behind the one that differs. Ended by Ctrl-C, the same call goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exportlab.files import atomic_write
from exportlab.sweep.changes import changes
from exportlab.sweep.page.counts import Sweep
from exportlab.sweep.records import Record, latest, parse_records

ROOT = Path(__file__).parents[1]
BUILD, STORED = ROOT / "build", ROOT / "docs/data/previous"
AGAIN = ".now"  # ends the name of the file with what was made again today
MODES = ("dynamic", "static")
TIMEOUT = "900"  # seconds, so many that a busy machine is not taken for what a release does


@dataclass(frozen=True)
class Question:
    """What a package is held against: the stored sweep of today's releases, and by whom and how it is asked again."""

    stored: Path
    exporters: tuple[str, ...]
    modes: tuple[str, ...]

    def records(self) -> list[Record]:
        """Return the records of today's releases that are asked again."""
        return [r for r in load_sweep(self.stored).records if r.exporter in self.exporters and r.mode in self.modes]

    def cases(self) -> list[str]:
        """Return the names of the cases, each once."""
        return list(dict.fromkeys(record.case for record in self.records()))


ZOO = Question(ROOT / "docs/data/matrix.jsonl", ("dynamo",), MODES)
ATLAS = Question(ROOT / "docs/data/atlas/transformers.jsonl.gz", ("to_onnx", "dynamo", "torch.export"), ("dynamic",))
QUESTIONS = {"torch": ATLAS, "transformers": ATLAS}  # any other package is asked as onnxscript is: the zoo, by torch.onnx.export


def load_sweep(path: Path) -> Sweep:
    """Return a stored sweep, packed or not; an empty one where there is no file."""
    if path.suffix != ".gz":
        return Sweep.read(path)
    made_in, records = parse_records(gzip.decompress(path.read_bytes()), path)
    return Sweep(latest(records), list(made_in.values()))


def both(package: str) -> tuple[Sweep, Sweep]:
    """Return the sweep with the previous release, and that of today's over the same runs, some of them made again."""
    before = load_sweep(STORED / f"{package}.jsonl")
    question = QUESTIONS.get(package, ZOO)
    return before, over(before, load_sweep(question.stored), load_sweep(STORED / f"{package}{AGAIN}.jsonl"))


def over(before: Sweep, now: Sweep, again: Sweep) -> Sweep:
    """Return the second sweep, over the runs of the first, with what was made again in place of what it repeats."""
    asked = {record.key for record in before.records}
    chosen = {record.key: record for record in [*now.records, *again.records] if record.key in asked}
    used = {record.environment for record in chosen.values()}
    known = {made_in["id"]: made_in for made_in in [*now.environments, *again.environments]}
    return Sweep(list(chosen.values()), [made_in for name, made_in in known.items() if name in used])


def python_with(package: str, version: str, also: Sequence[str]) -> Path:
    """Return the Python of an environment in which that release stands before the packages of this one.

    Raises:
        CalledProcessError: the environment cannot be made, or the release not be installed.
    """
    folder = BUILD / f"previous-{package}"
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", f"{package}=={version}", *also]
    subprocess.run(install, check=True)
    behind(Path(sysconfig.get_path("purelib", vars={"base": str(folder)})), Path(sysconfig.get_path("purelib")))
    return python


def behind(packages: Path, others: Path) -> None:
    """Let Python look for packages in the second folder where the first has none, and read the .pth files there."""
    (packages / "shared.pth").write_text(f"import site; site.addsitedir({str(others)!r})\n", encoding="utf-8")


def swept(python: Path, cases: Sequence[str], exporters: Sequence[str], modes: Sequence[str], output: Path) -> None:
    """Sweep with that Python, going on where the file ends. Cases that this release cannot build are said, and left out.

    Raises:
        SystemExit: it was ended, or cannot begin.
    """
    named = ["--cases", ",".join(cases), "--exporters", ",".join(exporters), "--modes", ",".join(modes)]
    command = [python, "-m", "exportlab.cli", "sweep", *named, "--timeout", TIMEOUT, "--output", output]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code not in (0, 1):
        sys.exit(code)


def rerun_differences(before: Path, now: Sweep, output: Path) -> None:
    """Make again, with today's releases, every run whose outcome differs: what differs then is not what changed here since."""
    old = load_sweep(before)
    found = changes(old.records, over(old, now, Sweep([])).records).outcomes
    for mode, exporter in sorted({(c.run[2], c.run[1]) for c in found}):
        swept(Path(sys.executable), [c.run[0] for c in found if c.run[1:] == (exporter, mode)], [exporter], [mode], output)


def sweep_with(package: str, version: str, cases: Sequence[str], also: Sequence[str]) -> None:
    """Sweep with another release, make again what differs, and store both."""
    question = QUESTIONS.get(package, ZOO)
    path = BUILD / f"previous-{package}-{version}.jsonl"
    swept(python_with(package, version, also), cases or question.cases(), question.exporters, question.modes, path)
    made_again = path.with_suffix(f"{AGAIN}.jsonl")
    rerun_differences(path, load_sweep(question.stored), made_again)
    STORED.mkdir(parents=True, exist_ok=True)
    for source, end in ((path, ""), (made_again, AGAIN)):
        if source.exists():
            with atomic_write(STORED / f"{package}{end}.jsonl") as draft:
                draft.write_bytes(source.read_bytes())


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", help="as torch, transformers or onnxscript")
    parser.add_argument("version", help="the release to hold against today's")
    parser.add_argument("--cases", type=lambda names: names.split(","), default=[], help="only these, separated by commas")
    parser.add_argument("--also", nargs="*", default=[], help="what this release needs besides, and today's does not")
    chosen = parser.parse_args()
    sweep_with(chosen.package, chosen.version, chosen.cases, chosen.also)


if __name__ == "__main__":
    main()
