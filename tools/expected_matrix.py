"""Every outcome that is expected, held against a new sweep.

`python tools/expected_matrix.py --check [--quick | --moving] [--exporters NAMES]`, or `--write` to store what is expected.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from exportlab import exporters, zoo
from exportlab.cases import Case
from exportlab.outcomes import Outcome
from exportlab.sweep import MODES, Limits, Task, grid, sweep
from exportlab.sweep.changes import Change, worst
from exportlab.sweep.progress import progress
from exportlab.sweep.records import Record, groups, read

ROOT = Path(__file__).parent.parent
EXPECTED, STORED = ROOT / "tests/expected/matrix.csv", ROOT / "docs/data/matrix.jsonl"
QUICK = 20  # cases
LIMITS = Limits(seconds=120)  # as `make matrix` has it
HINT = "run `make matrix` and look at the diff"

Run = tuple[str, str, str]  # case, exporter, mode
Outcomes = Mapping[Run, Outcome]


def outcomes_of(records: Iterable[Record]) -> dict[Run, Outcome]:
    """The outcome of each run, the worst of its rounds."""
    return {run: worst(rounds).outcome for run, rounds in groups(records).items()}


def to_csv(outcomes: Outcomes, cases: Sequence[str], names: Sequence[str]) -> str:
    """A line a case and mode, a column an exporter, in the order given; cases not named come last."""
    places = {case: place for place, case in enumerate([*cases, *sorted({run[0] for run in outcomes}.difference(cases))])}
    rows = sorted({(case, mode) for case, _, mode in outcomes}, key=lambda row: (places[row[0]], MODES.index(row[1])))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["case", "mode", *names])
    writer.writerows([case, mode, *(outcomes.get((case, name, mode), "") for name in names)] for case, mode in rows)
    return text.getvalue()


def from_csv(text: str) -> dict[Run, Outcome]:
    """What `to_csv` wrote."""
    rows = csv.DictReader(io.StringIO(text))
    found = {(row.pop("case"), row.pop("mode")): row for row in rows}
    return {(case, name, mode): Outcome(outcome) for (case, mode), row in found.items() for name, outcome in row.items() if outcome}


def differences(expected: Outcomes, seen: Mapping[Run, Record]) -> list[str]:
    """A line for each run that did not come out as expected, better or worse, with the error that ended it."""
    lines = {run: difference(run, expected.get(run), seen[run].outcome if run in seen else None) for run in {**expected, **seen}}
    return [f"{line}{_error(seen.get(run))}" for run, line in lines.items() if line]


def difference(run: Run, expected: Outcome | None, seen: Outcome | None) -> str:
    """What differs in one run; empty when nothing does."""
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


def covering(expected: Outcomes, count: int = QUICK) -> list[str]:
    """So many cases that between them show every outcome, and as many outcomes of each exporter in each mode as they can."""
    shows: dict[str, set[tuple[str, str, str]]] = {}
    for (case, exporter, mode), outcome in expected.items():
        shows.setdefault(case, set()).add((outcome, exporter, mode))
    chosen: list[str] = []
    shown: set[tuple[str, str, str]] = set()
    while len(chosen) < min(count, len(shows)):
        chosen.append(max((case for case in shows if case not in chosen), key=lambda case: _new(shows[case], shown)))
        shown |= shows[chosen[-1]]
    return chosen


def _new(shows: set[tuple[str, str, str]], shown: set[tuple[str, str, str]]) -> tuple[int, int]:
    """How many outcomes a case shows that none before it did, by themselves and by exporter and mode."""
    return len({outcome for outcome, *_ in shows} - {outcome for outcome, *_ in shown}), len(shows - shown)


def moving(expected: Outcomes) -> dict[Run, Outcome]:
    """Each case in one mode: dynamic, or static where its sizes never move."""
    return {run: outcome for run, outcome in expected.items() if run[2] == "dynamic" or (*run[:2], "dynamic") not in expected}


def tasks(expected: Outcomes, names: Sequence[str], cases: Sequence[Case]) -> list[Task]:
    """What to run: what is expected of these cases, and everything of a case that nothing is expected of yet."""
    known = {case for case, *_ in expected}
    return [task for task in grid(cases, names) if task.key[:3] in expected or task.case not in known]


def check(quick: bool, once: bool, only: Sequence[str]) -> int:
    """Runs what is expected, of these exporters or of all, prints each difference, and returns how many there are."""
    stored = from_csv(EXPECTED.read_text(encoding="utf-8"))
    stored = moving(stored) if once else stored
    names = runnable(only or dict.fromkeys(exporter for _, exporter, _ in stored))
    stored = {run: outcome for run, outcome in stored.items() if run[1] in names}
    asked = covering(stored) if quick else {case for case, *_ in stored} | {case.name for case in zoo.cases()}
    expected = {run: outcome for run, outcome in stored.items() if run[0] in asked}
    chosen = tasks(expected, names, [case for case in zoo.cases() if case.name in asked])
    with tempfile.TemporaryDirectory() as folder, progress(len(chosen)) as tell:
        records = sweep(chosen, Path(folder) / "matrix.jsonl", limits=LIMITS, tell=tell)
    found = differences(expected, {record.key[:3]: record for record in records})
    print("\n".join(found) or f"{len(chosen)} runs, every outcome as expected")
    return len(found)


def runnable(names: Iterable[str]) -> list[str]:
    """The exporters that can run here; of the others it says why not."""
    known = exporters.available()
    reasons = {name: known[name].missing() if name in known else "there is no such exporter" for name in names}
    for name, reason in reasons.items():
        if reason:
            print(f"left out: {name}: {reason}")
    return [name for name, reason in reasons.items() if not reason]


def write() -> None:
    """Stores the outcomes of the stored sweep as those to expect."""
    outcomes = outcomes_of(read(STORED))
    names = [name for name in exporters.available() if name in {exporter for _, exporter, _ in outcomes}]
    EXPECTED.parent.mkdir(exist_ok=True)
    EXPECTED.write_text(to_csv(outcomes, [case.name for case in zoo.cases()], names), encoding="utf-8")
    print(f"{len(outcomes)} outcomes are in {EXPECTED.relative_to(ROOT)}")


def main() -> int:
    """0 when everything is as expected, 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    does = parser.add_mutually_exclusive_group(required=True)
    does.add_argument("--check", action="store_true", help="run the sweep again, and fail on any other outcome")
    does.add_argument("--write", action="store_true", help="expect what the stored sweep has")
    less = parser.add_mutually_exclusive_group()
    less.add_argument("--quick", action="store_true", help=f"only {QUICK} cases, which show every outcome")
    less.add_argument("--moving", action="store_true", help="every case, in one mode: dynamic where it has axes that move")
    parser.add_argument("--exporters", type=lambda names: names.split(","), default=[], help="only these, separated by commas")
    chosen = parser.parse_args()
    return write() or 0 if chosen.write else min(1, check(chosen.quick, chosen.moving, chosen.exporters))


if __name__ == "__main__":
    sys.exit(main())
