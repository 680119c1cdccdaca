"""The counts on the page of what `to_onnx` got wrong: its faults by how they were found, and what random programs show of two exporters."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

from site_files import PARTS, ROOT, write
from sphinx.application import Sphinx

FAULTS = ROOT / "docs/data/wrong.csv"
HUNTS = ROOT / "docs/data/hunts.jsonl"
WAYS = {  # how a fault was found, and what that means
    "written to break it": "models that were written by hand in order to get a wrong export",
    "field test": "models that were written as their users write them, from memory, and tried",
    "public bug reports": "models rebuilt from bug reports about other exporters",
    "code review": "faults that a reviewer saw in the code of the exporter, then measured",
    "random programs": "programs that a fuzzer wrote, compared with eager at sizes never exported",
    "the atlas": "architectures of installed libraries, by name",
    "torch's operator tests": "the samples that torch tests its own operators with",
    "not recorded": "the commit that corrects it does not name how it was found",
}
EXPORTERS = {"to_onnx": "`to_onnx`", "dynamo": "`torch.onnx.export`", "torch.export": "`torch.export`"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the counts before the page is read."""
    app.connect("builder-inited", lambda _: store_parts())
    return {"parallel_read_safe": True}


def store_parts() -> None:
    """Write what docs/wrong.md includes."""
    write(PARTS / "wrong-counts.md", counts(faults()))
    write(PARTS / "wrong-hunts.md", hunts(HUNTS))


def faults() -> list[dict[str, str]]:
    """Return the faults, oldest first."""
    with FAULTS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def counts(rows: list[dict[str, str]]) -> str:
    """Return how many faults were found in which way, as a table."""
    seen = Counter(row["found"] for row in rows)
    lines = [f"| {way} | {seen[way]} | {meaning} |" for way, meaning in WAYS.items() if seen[way]]
    total = f"| **all** | **{len(rows)}** | from {rows[0]['date']} to {rows[-1]['date']} |"
    return "\n".join(["| found by | faults | |", "| --- | ---: | --- |", *lines, total, ""])


def hunts(path: Path) -> str:
    """Return what the stored hunts of the fuzzer saw of each exporter, as a table."""
    seen: dict[str, Counter[str]] = {name: Counter() for name in EXPORTERS}
    for line in path.read_text(encoding="utf-8").splitlines():
        for name, found in json.loads(line)["exporters"].items():
            seen.get(name, Counter()).update(found)
    rows = [f"| {EXPORTERS[name]} | {total(found)} | {found['wrong']} | {rate(found)} |" for name, found in seen.items() if total(found)]
    return "\n".join(["| exporter | exports | wrong without a word | rate |", "| --- | ---: | ---: | ---: |", *rows, ""])


def total(found: Counter[str]) -> int:
    """Return how many exports were tried."""
    return found.total()


def rate(found: Counter[str]) -> str:
    """Return the share of wrong exports in percent."""
    return f"{100 * found['wrong'] / total(found):.1f} %"
