"""Every case captured by running and by torch.export: the outcome of each, and whether the two graphs are one.

`python tools/compare_captures.py records.jsonl [--sets NAMES] [--cases NAMES] [--write]` goes on where the records end; `--write` stores
every difference in docs/data/captures.csv and the counts in docs/data/captures-counts.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from same_graph import difference
from torch.export import Dim

from content import zoo
from exportlab.exporters import Artifact, get
from exportlab.messages import quiet
from exportlab.outcomes import Outcome
from exportlab.verification.comparison import Attempt, attempt, reason
from exportlab.verification.report import Report
from fx2onnx import ToOnnxError

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/fx2onnx"))
from crew import Lost, done  # noqa: E402
from op_database import DTYPES, LEFT_OUT, Task, database, sample_outcome, samples, tasks  # noqa: E402
from operators import Call, exported_and_verified, movable  # noqa: E402

DIFFERENCES = ROOT / "docs/data/captures.csv"
COUNTS = ROOT / "docs/data/captures-counts.csv"
SETS = ("zoo", "architectures", "op_db float32")
CAPTURES = ("run", "torch.export")
LIMIT = 300  # seconds for both captures of one case
SAID = 160  # characters of a message
DEFECT = "defect"  # an error that is none of `to_onnx`
NEVER = {Outcome.WRONG, Outcome.FROZEN, Outcome.CRASH, Outcome.TIMEOUT, DEFECT}


@dataclass(frozen=True)
class Case:
    """What is captured twice: a case of the zoo, or one sample of an operator of the database."""

    set: str
    case: str
    mode: str


@dataclass(frozen=True)
class Row(Case):
    """What became of a case by each capture: an outcome, and by what the first graph differs, or what the one that is not right said."""

    run: str
    torch_export: str
    graphs: str
    why: str


def cases(sets: Iterable[str], names: Sequence[str] = ()) -> Iterator[Case]:
    """Yield what there is to compare in these sets: everything, or what is named."""
    for which in sets:
        for name, mode in (
            _list_operator_cases(which.split()[1]) if which.startswith("op_db") else _list_zoo_cases(which == "architectures")
        ):
            if not names or name in names or name.partition("#")[0] in names:
                yield Case(which, name, mode)


def _list_zoo_cases(architectures: bool) -> Iterator[tuple[str, str]]:
    for case in zoo.cases():
        if ("transformers" in case.topics) is architectures:
            yield from ((case.name, mode) for mode in (("moving", "static") if case.moves else ("static",)))


def _list_operator_cases(dtype: str) -> Iterator[tuple[str, str]]:
    """Yield the first sample of each operator, with dynamic dimensions."""
    for task in tasks(dtypes=[dtype]):
        if task.mode == "dynamic":
            yield f"{task.op}#0", "moving"


def compare_case(case: Case) -> Row | None:
    """Capture one case twice; None where it says nothing about an export."""
    quiet()
    return _compare_operator_case(case) if case.set.startswith("op_db") else _compare_zoo_case(case)


def _compare_zoo_case(case: Case) -> Row:
    built = zoo.get(case.case).build()
    given, shapes = (built.samples, built.dynamic_shapes) if case.mode == "moving" else (built.samples[:1], None)
    tried = [_attempt(built.module, given, shapes, capture) for capture in CAPTURES]
    return _row(case, [(outcome_of(one), _describe_attempt(one)) for one in tried], [one.artifact for one in tried])


def _attempt(module: Any, given: Any, shapes: Any, capture: str) -> Attempt:
    torch.manual_seed(0)
    return attempt(get("to_onnx"), module, given, shapes, capture=capture)


def outcome_of(tried: Attempt) -> str:
    """Return the outcome; an error of the export that is none of `to_onnx` is a defect."""
    return DEFECT if tried.artifact is None and not isinstance(tried.error, ToOnnxError) else tried.outcome


def _describe_attempt(tried: Attempt) -> str:
    return reason(tried.error) if tried.error else str(tried.row()["what was seen"])


def _compare_operator_case(case: Case) -> Row | None:
    name, _, place = case.case.partition("#")
    task = Task(name, case.set.split()[1], "dynamic" if case.mode == "moving" else case.mode)
    op = database()[name]
    found = samples(op, DTYPES[task.dtype], 1)
    if int(place) >= len(found):
        return None
    made = [_operator_made(op, found[int(place)], task, capture) for capture in CAPTURES]
    if made[0][0][0] == LEFT_OUT:
        return None
    return _row(case, [seen for seen, _ in made], [artifact for _, artifact in made])


def _operator_made(op: Any, sample: Any, task: Task, capture: str) -> tuple[tuple[str, str], Artifact | None]:
    """What was seen of one sample, and the artifact, if it came to one."""
    kept: list[Artifact] = []

    def report_of(function: Any, *args: Any, dynamic: bool, options: dict[str, Any]) -> Report:
        module = Call(function, args, {})
        tensors = tuple(leaf for leaf in torch.utils._pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor))
        shapes = (axes_that_move(module, tensors),) if dynamic else None
        artifact, report = exported_and_verified(module, tensors, shapes, {**options, "capture": capture})
        kept.append(artifact)
        return report

    outcome, detail = sample_outcome(op, sample, task, report_of)
    return (DEFECT if detail.startswith("bug:") else outcome, detail), next(iter(kept), None)


def axes_that_move(module: Call, tensors: tuple[torch.Tensor, ...]) -> tuple[dict[int, Any], ...]:
    """Return the axes that move, those that have to be equal by one name: as torch.export finds out, which a run does not."""
    free = [dict.fromkeys(movable(tensor), Dim.AUTO) for tensor in tensors]
    try:
        program = torch.export.export(module, tensors, dynamic_shapes=(tuple(free),))
    except Exception:  # noqa: BLE001 - whatever it is, both captures are asked for every axis then
        return tuple(dict.fromkeys(axes, Dim.DYNAMIC) for axes in free)
    inputs = [
        node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name in program.graph_signature.user_inputs
    ]
    found = [{axis: _find_requested_dim(value.shape[axis], program) for axis in axes} for value, axes in zip(inputs, free, strict=True)]
    return tuple({axis: dim for axis, dim in axes.items() if dim is not None} for axes in found)


def _find_requested_dim(size: Any, program: torch.export.ExportedProgram) -> Any:
    """What to ask of an axis that torch.export made this size: nothing where it is constant."""
    if isinstance(size, int) or not size.node.expr.free_symbols:
        return None
    symbol, *others = size.node.expr.free_symbols
    least = program.range_constraints[symbol].lower
    dim = Dim(str(symbol), min=int(least)) if least > 2 else Dim(str(symbol))  # those of 0 and 1 are asked for as well
    factor, rest = size.node.expr.coeff(symbol), size.node.expr.subs(symbol, 0)
    return Dim.DYNAMIC if others else dim if size.node.expr == symbol else int(factor) * dim + int(rest)


def _row(case: Case, seen: Sequence[tuple[str, str]], artifacts: Sequence[Artifact | None]) -> Row:
    (run, by_run), (export, by_export) = seen
    graphs, why = "", ""
    if all(artifacts):
        why = difference(artifacts[0].model, artifacts[1].model)  # type: ignore[union-attr]
        graphs = "equal" if not why else "same operators" if why[0] not in "+-" else "other"
    if run != export or run in NEVER:
        why = shorten_message(by_run if run != Outcome.OK else by_export)
    return Row(case.set, case.case, case.mode, str(run), str(export), graphs, why)


def shorten_message(message: str) -> str:
    """Return the beginning of a message, without the line of the harness."""
    return re.sub(r" at tests/\S+ in <lambda>", "", " ".join(message.split()))[:SAID]


def kind_of(row: Row) -> str:
    """Return in which column of the counts a case stands."""
    ok = (row.run == Outcome.OK, row.torch_export == Outcome.OK)
    return {(True, False): "run alone", (False, True): "torch.export alone", (False, False): "neither"}.get(ok) or row.graphs


WHY_NOT_RUN = {
    "vmap": "BatchedTensor",
    "values": "depends on values|(?:value|number) (?:is|can be) read|reads (?:tensor )?values",
    "sizes": "of the other sizes (?:that were )?tried",
}
KINDS = ("equal", "same operators", "other", "run alone", "torch.export alone", "neither")


def why_not_run(row: Row) -> str:
    """Return of what kind the reason is that a case comes out by torch.export alone."""
    return next((kind for kind, pattern in WHY_NOT_RUN.items() if re.search(pattern, row.why)), "other")


def counts(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return how many cases of each set and mode came out right by both captures with equal graphs, and so on; the last row is the sum."""
    found = Counter((row.set, row.mode, kind_of(row)) for row in rows)
    groups = [(which, mode) for which in SETS for mode in ("static", "moving") if any(key[:2] == (which, mode) for key in found)]
    table: list[dict[str, Any]] = [
        {"set": which, "mode": mode} | {kind: found[which, mode, kind] for kind in KINDS} for which, mode in groups
    ]
    return [*table, {"set": "all", "mode": ""} | {kind: sum(row[kind] for row in table) for kind in KINDS}]


def sentences(total: Mapping[str, Any], listed: Iterable[Row]) -> list[str]:
    """Return what the page says of the counts, in sentences."""
    number = {kind: int(total[kind]) for kind in KINDS}
    both = sum(number[kind] for kind in KINDS[:3])
    why = Counter(why_not_run(row) for row in listed if kind_of(row) == "torch.export alone")
    return [
        f"Of the {both:,} cases that are right with both captures, {100 * number['equal'] / both:.1f} % have equal graphs",
        f"In {number['same operators']} more, the graphs have the same operators",
        f"The other {number['other']}",
        f"{number['run alone']} cases are right only with traced runs",
        f"{number['torch.export alone']} cases are right only with `torch.export`",
        f"{why['values']} of these need a number or a length that depends on values",
        f"{why['vmap']} use `vmap`",
        f"{why['sizes']} run at too few of the sizes that were tried",
        f"{why['other']} have other reasons",
        f"{number['neither']} cases are right with neither capture",
    ]


def differs(row: Row) -> bool:
    """Whether a case is listed: its outcomes or its graphs differ, or both are what no outcome should be."""
    return row.run != row.torch_export or row.graphs in ("same operators", "other") or row.run in NEVER


def write(rows: Iterable[Row]) -> None:
    """Store the differences and the counts, each file whole or not at all."""
    rows = sorted(rows, key=lambda row: (SETS.index(row.set), row.case, row.mode))
    _store(DIFFERENCES, [asdict(row) for row in rows if differs(row)], [field.name for field in fields(Row)])
    _store(COUNTS, counts(rows), ["set", "mode", *KINDS])


def _store(path: Path, rows: Iterable[dict[str, Any]], names: Sequence[str]) -> None:
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    with beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    beside.replace(path)


def read(path: Path = DIFFERENCES) -> list[Row]:
    """Return the stored differences."""
    with path.open(newline="", encoding="utf-8") as file:
        return [Row(**row) for row in csv.DictReader(file)]


def load_records(path: Path) -> dict[Case, Row | None]:
    """Return what is among the records of an earlier call; a torn last line is none."""
    found: dict[Case, Row | None] = {}
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else ():
        if line.endswith("\n"):
            case, row = json.loads(line)
            found[Case(**case)] = row and Row(**row)
    return found


def run(wanted: Sequence[Case], path: Path, processes: int) -> None:
    """Compare these cases and append each to the records as it comes."""
    database()
    with path.open("a", encoding="utf-8") as file:
        for case, row in done(wanted, compare_case, processes, LIMIT):
            row = (
                Row(**asdict(case), run=row.outcome, torch_export=row.outcome, graphs="", why=row.detail) if isinstance(row, Lost) else row
            )
            file.write(json.dumps([asdict(case), row and asdict(row)]) + "\n")
            file.flush()
            if row and (differs(row) or row.why):
                print(*asdict(row).values(), sep=" | ", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--cases", nargs="+", default=[])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true", help=f"store {DIFFERENCES.name} and {COUNTS.name}")
    asked = parser.parse_args()
    before = load_records(asked.records)
    run([case for case in cases(asked.sets, asked.cases) if case not in before], asked.records, asked.processes)
    rows = [row for row in load_records(asked.records).values() if row]
    table = counts(rows)
    for row in table:
        print(*row.values())
    if asked.write:
        write(rows)
        print(*sentences(table[-1], rows), sep="\n")


if __name__ == "__main__":
    main()
