"""Makes the sweeps that lesson 311 holds against each other: its models with earlier releases, and with one earlier release at a time.

usage: upgrade_sweeps.py FOLDER      where the environments go; the sweeps are stored in docs/data/upgrade/
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path

from previous import behind

from exportlab.files import atomic_write
from exportlab.outcomes import Outcome
from exportlab.sweep.records import read

ROOT = Path(__file__).parents[1]
STORED = ROOT / "docs/data/upgrade"
MODELS = "tutorials/upgrade/my_models.py"
EARLIER = {"onnxscript": "0.7.1", "onnx-ir": "1.0.0", "onnxruntime": "1.30.0"}
BROKEN, DAILY = "tagger", "onnxscript"  # the case that broke, and the package whose builds of each day are asked
MONTHS = {"07": (1, 10, 11, 14, 25, 31), "08": (5, 14, 19, 21, 22, 25, 26), "09": (3, 4, 5, 9)}
DAYS = tuple(f"0.7.2.dev2026{month}{day:02}" for month, days in MONTHS.items() for day in days)


def environment(folder: Path, pins: Mapping[str, str]) -> Path:
    """Return the Python of an environment in which these releases stand before the packages of this one.

    Raises:
        CalledProcessError: it cannot be made, or a release not be installed.
    """
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        releases = [f"{package}=={version}" for package, version in pins.items()]
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--only-binary", ":all:"]
        if releases:
            subprocess.run([*pip, *releases], check=True)
        behind(Path(sysconfig.get_path("purelib", vars={"base": str(folder)})), Path(sysconfig.get_path("purelib")))
    return python


def sweep(python: Path, output: Path, cases: str = MODELS) -> Path:
    """Sweep the models in that environment, by torch.onnx.export with moving axes, and return the file of records.

    Raises:
        CalledProcessError: the sweep cannot begin.
    """
    output.unlink(missing_ok=True)
    asked = ["--cases", cases, "--exporters", "dynamo", "--modes", "dynamic", "--processes", "1", "--timeout", "1200"]
    done = subprocess.run([python, "-m", "exportlab.cli", "sweep", *asked, "--output", output], cwd=ROOT, check=False)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return output


def asked_by_day(root: Path) -> dict[str, str]:
    """Return what became of the broken case with the builds that a search by halves asks."""
    answers: dict[str, str] = {}

    def is_bad(day: str) -> bool:
        python = environment(root / f"{DAILY}-{day}", {DAILY: day})
        (record,) = read(sweep(python, root / f"{day}.jsonl", f"{MODELS}:{BROKEN}"))
        answers[day] = record.outcome
        return record.outcome is not Outcome.OK

    bisect_left(DAYS, True, key=is_bad)
    return answers


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the environments go")
    root = parser.parse_args().folder.resolve()
    asked = {"before": EARLIER, "after": {}, **{f"only-{name}": {name: version} for name, version in EARLIER.items()}}
    for name, pins in asked.items():
        made = sweep(environment(root / name, pins), root / f"{name}.jsonl")
        with atomic_write(STORED / made.name) as draft:
            draft.write_bytes(made.read_bytes())
    with atomic_write(STORED / "days.json") as draft:
        draft.write_text(json.dumps({"days": DAYS, "asked": asked_by_day(root)}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
