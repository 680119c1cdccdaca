"""Every outcome that is expected, held against a new sweep.

`python tools/expected_matrix.py --check [--quick [CASES] | --moving] [--exporters NAMES]`, `--write` to store what is expected, or
`--store FILE` to store a sweep of some cases.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from expected import EXPECTED, QUICK, Run, covering, from_csv, moving, to_csv

from content import zoo
from exportlab import exporters
from exportlab.cases import Case
from exportlab.outcomes import Outcome
from exportlab.sweep import Limits, Task, grid, sweep
from exportlab.sweep.changes import Change, find_worst_record
from exportlab.sweep.progress import progress
from exportlab.sweep.records import Record, groups, read

ROOT = Path(__file__).parent.parent
STORED = ROOT / "docs/data/matrix.jsonl"
LIMITS = Limits(seconds=120)  # as `make matrix` has it
HINT = "run `make matrix` and look at the diff"

Outcomes = Mapping[Run, Outcome]
Kind = TypeVar("Kind")


def outcomes_of(records: Iterable[Record]) -> dict[Run, Outcome]:
    """Return the outcome of each run, the worst of its rounds."""
    return {run: find_worst_record(rounds).outcome for run, rounds in groups(records).items()}


def differences(expected: Outcomes, seen: Mapping[Run, Record]) -> list[str]:
    """Return a line for each run that did not come out as expected, better or worse, with the error that ended it."""
    lines = {run: difference(run, expected.get(run), seen[run].outcome if run in seen else None) for run in {**expected, **seen}}
    return [f"{line}{_error(seen.get(run))}" for run, line in lines.items() if line]


def difference(run: Run, expected: Outcome | None, seen: Outcome | None) -> str:
    """Return what differs in one run; empty when nothing does."""
    case, exporter, mode = run
    if seen is None:
        return f"{case}, {mode}, {exporter}: no record, {expected} was expected"
    if expected is None:
        return f"{case}, {mode}, {exporter}: {seen}, and nothing is expected yet ({HINT})"
    if seen == expected:
        return ""
    return str(Change(run, expected, seen)).replace("(better)", f"(better: {HINT})")


def _error(record: Record | None) -> str:
    return f"\n    {record.error}" if record and record.error else ""


def tasks(expected: Outcomes, names: Sequence[str], cases: Sequence[Case]) -> list[Task]:
    """Return what to run: what is expected of these cases, and everything of a case that nothing is expected of yet."""
    known = {case for case, *_ in expected}
    return [task for task in grid(cases, names) if task.key[:3] in expected or task.case not in known]


def check(expected: Outcomes, cases: Iterable[str], names: Sequence[str], passed: Callable[[str], None] = lambda case: None) -> int:
    """Run what is expected of some cases by some exporters, print each difference, and return how many there are.

    `passed` is told each case that has none.
    """
    asked = list(cases)
    chosen = tasks(expected, names, [case for case in zoo.cases() if case.name in asked])
    with tempfile.TemporaryDirectory() as folder, progress(len(chosen)) as tell:
        records = sweep(chosen, Path(folder) / "matrix.jsonl", limits=LIMITS, tell=tell)
    seen = {record.key[:3]: record for record in records}
    found = {case: differences(select_runs(expected, case), select_runs(seen, case)) for case in asked}
    print("\n".join(line for lines in found.values() for line in lines) or f"{len(chosen)} runs, every outcome as expected")
    for case in (case for case, lines in found.items() if not lines):
        passed(case)
    return sum(map(len, found.values()))


def select_runs(runs: Mapping[Run, Kind], case: str) -> dict[Run, Kind]:
    """Return the runs of one case."""
    return {run: value for run, value in runs.items() if run[0] == case}


def load_expected(names: Collection[str] = ()) -> dict[Run, Outcome]:
    """Return what is expected of these exporters, or of all."""
    found = from_csv(EXPECTED.read_text(encoding="utf-8"))
    return {run: Outcome(outcome) for run, outcome in found.items() if not names or run[1] in names}


def run_check(quick: int, once: bool, only: Sequence[str]) -> int:
    """Check what the command line selects, all cases or `quick` of them, and return the number of differences."""
    names = runnable(only or dict.fromkeys(exporter for _, exporter, _ in load_expected()))
    expected = moving(load_expected(names)) if once else load_expected(names)
    everything = dict.fromkeys([*(case for case, *_ in expected), *(case.name for case in zoo.cases())])
    return check(expected, covering(expected, quick) if quick else everything, names)


def runnable(names: Iterable[str]) -> list[str]:
    """Return the exporters that can run here; of the others it says why not."""
    known = exporters.available()
    reasons = {name: known[name].missing() if name in known else "there is no such exporter" for name in names}
    for name, reason in reasons.items():
        if reason:
            print(f"left out: {name}: {reason}")
    return [name for name, reason in reasons.items() if not reason]


def write() -> None:
    """Store the outcomes of the stored sweep as those to expect."""
    outcomes = outcomes_of(read(STORED))
    names = [name for name in exporters.available() if name in {exporter for _, exporter, _ in outcomes}]
    EXPECTED.parent.mkdir(exist_ok=True)
    EXPECTED.write_text(to_csv(outcomes, [case.name for case in zoo.cases()], names), encoding="utf-8")
    print(f"{len(outcomes)} outcomes are in {EXPECTED.relative_to(ROOT)}")


def store(swept: Path) -> None:
    """Put the records of a sweep of some cases in the place of those that are stored of these cases, and expect their outcomes."""
    new = swept.read_text(encoding="utf-8").splitlines()
    cases = {json.loads(line).get("case") for line in new} - {None}
    kept = [line for line in STORED.read_text(encoding="utf-8").splitlines() if json.loads(line).get("case") not in cases]
    draft = STORED.with_suffix(".new")
    draft.write_text("\n".join([*kept, *new]) + "\n", encoding="utf-8")
    draft.replace(STORED)
    write()


def main() -> int:
    """Return 0 when everything is as expected, 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    does = parser.add_mutually_exclusive_group(required=True)
    does.add_argument("--check", action="store_true", help="run the sweep again, and fail on any other outcome")
    does.add_argument("--write", action="store_true", help="expect what the stored sweep has")
    does.add_argument("--store", type=Path, metavar="FILE", help="store a sweep of some cases, and expect what it has")
    less = parser.add_mutually_exclusive_group()
    less.add_argument(
        "--quick",
        type=int,
        nargs="?",
        const=QUICK,
        default=0,
        metavar="CASES",
        help=f"only so many cases, {QUICK} by default, which show every outcome",
    )
    less.add_argument("--moving", action="store_true", help="every case, in one mode: dynamic where it has axes that move")
    parser.add_argument("--exporters", type=lambda names: names.split(","), default=[], help="only these, separated by commas")
    chosen = parser.parse_args()
    if chosen.check:
        return min(1, run_check(chosen.quick, chosen.moving, chosen.exporters))
    store(chosen.store) if chosen.store else write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
