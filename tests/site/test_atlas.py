"""The page of the atlas: counted a second time from its stored sweeps, and what its costs are medians of."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import atlas as page
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from content.atlas import timm, transformers
from exportlab.exporters.display_names import spoken
from exportlab.outcomes import Outcome
from exportlab.sweep.page.counts import Sweep
from exportlab.sweep.records import Record

ROOT = Path(__file__).parents[2]
ROWS = [
    json.loads(line)
    for stored in sorted((ROOT / "docs/data/atlas").glob("*.gz"))
    for line in gzip.decompress(stored.read_bytes()).decode().splitlines()
]
RECORDS = [row for row in ROWS if "case" in row]


def test_the_totals_are_those_of_the_files() -> None:
    made = page.parts(page.load_sweeps(page.STORED))["parts/atlas-totals.html"]
    right = Counter(row["exporter"] for row in RECORDS if row["outcome"] == "ok")
    for exporter, asked in Counter(row["exporter"] for row in RECORDS).items():
        assert f"<code>{spoken(exporter)}</code> (right in {right[exporter]} of {asked}" in made


def test_every_stored_model_is_in_the_table_once() -> None:
    made = page.parts(page.load_sweeps(page.STORED))["parts/atlas-table.html"]
    assert sorted(re.findall(r'data-case="([^"]+)"', made)) == sorted({row["case"] for row in RECORDS})


def test_costs_are_of_models_that_all_got_right() -> None:
    def record(case: str, exporter: str, seconds: float, outcome: Outcome = Outcome.OK) -> Record:
        return Record(f"timm.{case}", exporter, "dynamic", outcome, seconds={"export": seconds}, nodes=round(seconds), peak_bytes=2_000_000)

    given = [("a", 1.0, 4.0), ("b", 2.0, 6.0), ("c", 90.0, 9.0)]
    found = [record(case, name, seconds) for case, *both in given for name, seconds in zip(("to_onnx", "torch.export"), both, strict=True)]
    found[-1] = record("c", "torch.export", 9.0, Outcome.WRONG)
    costs = {cost.exporter: cost for cost in page.families(Sweep(found))}
    assert (costs["to_onnx"].right, costs["to_onnx"].asked, costs["to_onnx"].compared) == (3, 3, 2)
    assert costs["to_onnx"].listed == len(timm.MODELS)
    assert (costs["to_onnx"].seconds, costs["torch.export"].seconds) == (1.5, 5.0)
    assert (costs["torch.export"].right, costs["torch.export"].nodes, costs["torch.export"].peak) == (2, 5, 2.0)
    assert "<td" in page.render_costs(list(costs.values()))


def test_a_file_that_differs_only_where_a_mask_hides_everything_is_compared_and_counts_as_neither_right_nor_wrong() -> None:
    def record(name: str, *values: str) -> Record:
        failed = tuple({"check": "other values", "inputs": f"{value}: i64[2]", "outcome": "wrong"} for value in values)
        return Record("timm.a", name, "dynamic", Outcome.WRONG if values else Outcome.OK, seconds={"export": 1.0}, failed=failed)

    def counted(*values: str) -> tuple[int, int, int]:
        cost = page.families(Sweep([record("to_onnx"), record("dynamo", *values)]))[-1]
        return cost.right, cost.masked, cost.compared

    assert counted("masks all false", "integers zero") == (0, 1, 1)
    assert counted("masks all false", "one NaN") == (0, 0, 0)


def test_the_page_says_how_many_types_there_are() -> None:
    text = " ".join((ROOT / "docs/atlas.md").read_text(encoding="utf-8").split())
    assert f"Of the {len(MODEL_MAPPING_NAMES)} types that the library lists, these rules build {len(transformers.types())}." in text
