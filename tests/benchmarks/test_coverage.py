"""What the page on coverage says first, computed a second time, from the lines of the stored sweep and from such as are made up."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recomputed import METADATA, ROOT, Lines, all_of, check, named

from content import zoo
from exportlab.diagnostics import any_names_cause
from exportlab.outcomes import Outcome
from exportlab.sweep.records import Record

MATRIX = ROOT / "docs/data/matrix.jsonl"
ZOO = ROOT / "content/zoo"
KINDS = {
    "ok": "right",
    "capture": "refused",
    "convert": "refused",
    "narrow": "narrow",
    "wrong": "silently wrong",
    "frozen": "silently wrong",
}
MASKED = "right except where a mask hides everything"
CLOSED = {"integers zero", "integers at their least", "masks all false"}
ORDER = ("right", MASKED, "refused", "narrow", "failed", "wrong, but warned", "silently wrong")


def kind_of(line: Mapping[str, Any]) -> str:
    kind = KINDS.get(line["outcome"], "failed")
    values = {c["inputs"].split(": ")[0] if c["check"] == "other values" else "" for c in line.get("failed", ())}
    if kind == "silently wrong" and values and values <= CLOSED:
        return MASKED
    return "wrong, but warned" if kind == "silently wrong" and any_names_cause(line.get("said", ())) else kind


def moving_runs() -> list[tuple[str, str, str]]:
    """Family, exporter and kind of every case whose axes move, that of its worst round."""
    runs: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in map(json.loads, MATRIX.read_text(encoding="utf-8").splitlines()):
        if line.get("mode") == "dynamic":
            runs[line["case"], line["exporter"]].append(kind_of(line))
    texts = {path.stem: path.read_text(encoding="utf-8") for path in ZOO.glob("*.py")}
    families = {name: family for family, text in texts.items() for name in re.findall(r"^def (\w+)", text, re.MULTILINE)}
    worst = {run: max(kinds, key=lambda kind: ("wrong" in kind, kind != "right")) for run, kinds in runs.items()}
    return [(families.get(case, ""), exporter, kind) for (case, exporter), kind in worst.items()]


def tally(runs: Sequence[tuple[str, str, str]], by: int) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for run in runs:
        found[run[by]][run[2]] += 1
    return found


def percent(seen: Counter[str], kind: str) -> str:
    return f"{100 * seen[kind] / seen.total():.9f} %"


def test_coverage(headline: Callable[[str], Lines]) -> None:
    runs = moving_runs()
    seen, families = tally(runs, 1), {name: kinds for name, kinds in tally(runs, 0).items() if name and kinds.total() >= 50}
    part = {name: (kinds["silently wrong"] / kinds.total(), -kinds["right"] / kinds.total()) for name, kinds in seen.items()}
    ranked = sorted(seen, key=part.__getitem__)
    large, small = ([name for name in ranked if (seen[name].total() >= 50) == many] for many in (True, False))
    cases = {n: f"{seen[n]['silently wrong']} of {seen[n].total()} cases ({percent(seen[n], 'silently wrong')})" for n in large}
    ends = [all_of([f"{named(n)} in {cases[n]}" for n in large if part[n][0] == part[large[at]][0]]) for at in (0, -1)]
    hard = sorted(families, key=lambda name: families[name]["right"] / families[name].total())
    worst = max(families, key=lambda name: families[name]["silently wrong"] / families[name].total())
    check(
        headline("coverage"),
        [
            f"With axes that move, the fewest silently wrong answers came from {ends[0]}, the most from {ends[1]}",
            *(
                f"{named(name)}, {seen[name].total()} cases: {', '.join(f'{k} {percent(seen[name], k)}' for k in ORDER if seen[name][k])}"
                for name in large
            ),
            *(
                f"{named(name)} was tried with {seen[name].total()} cases only: "
                + ", ".join(f"{seen[name][kind]} {kind}" for kind in ORDER if seen[name][kind])
                for name in small
            ),
            "right in the hardest families, all exporters together: "
            + ", ".join(f"{name} {percent(families[name], 'right')} of {families[name].total()} runs" for name in hard[:3]),
            f"most often silently wrong: {worst}, {percent(families[worst], 'silently wrong')} of {families[worst].total()} runs",
        ],
    )


def test_no_share_is_made_of_fewer_than_50(headline: Callable[[str], Lines]) -> None:
    few = [line for line in headline("coverage") if " cases only: " in line]
    assert "AOTInductor" in " ".join(few)
    assert not [line for line in few if "%" in line]
    many = re.findall(r"(\d+) (?:cases|runs)", " ".join(line for line in headline("coverage") if line not in few))
    assert min(map(int, many)) >= 50


def test_what_was_warned_of_and_what_is_narrow_is_not_silent(headline: Callable[[str], Lines], stored_elsewhere: Path) -> None:
    cases = [case.name for case in zoo.cases()][:60]
    kinds = {"to_onnx": ["wrong"] * 3, "dynamo": ["frozen"] * 3 + ["narrow"] * 6, "torchscript": ["wrong"] * 6, "aoti": ["wrong"]}
    cause = "TracerWarning: Converting a tensor to a Python boolean might cause the trace to be incorrect."
    made = [
        Record(case, who, "dynamic", Outcome(outcome), said=(cause,) if who == "torchscript" and i < 2 else ())
        for who, outcomes in kinds.items()
        for i, (case, outcome) in enumerate(zip(cases, outcomes + ["ok"] * (60 if who != "aoti" else 3), strict=False))
    ]
    head = {"schema": 1, "environment": {"id": "0", **METADATA, "torch_version": "2", "onnxruntime_version": "1"}}
    lines = [json.dumps(head), *(record.line() for record in made)]
    (stored_elsewhere / "docs/data/matrix.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    first, *others = headline("coverage")
    least = "to_onnx in 3 of 60 cases (5 %) and torch.onnx.export in 3 of 60 cases (5 %)"
    assert (
        first
        == f"With axes that move, the fewest silently wrong answers came from {least}, the most from torchscript in 4 of 60 cases (7 %)"
    )
    assert "torch.onnx.export, 60 cases: right 85 %, narrow 10 %, silently wrong 5 %" in others
    assert "torchscript, 60 cases: right 90 %, wrong, but warned 3 %, silently wrong 7 %" in others
    assert "AOTInductor was tried with 4 cases only: 3 right, 1 silently wrong" in others
