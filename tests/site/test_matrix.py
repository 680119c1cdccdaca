"""The page of the support matrix: what it is made of, beside the package's own page of a sweep."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import support_matrix as page
from expected import EXPECTED, from_csv
from support_matrix import links
from swept import RECORDS, Rows, cases, sweep_of

from content import zoo
from exportlab.outcomes import Outcome
from exportlab.sweep.page import counts
from exportlab.sweep.records import Record

ROOT = Path(__file__).parents[2]


def test_pages_that_cells_link_to_exist() -> None:
    for target in {*links.CASE_PAGES.values(), *links.TOPIC_PAGES.values()}:
        assert links.title(target)
    assert links.CASE_PAGES.keys() - {case.name for case in zoo.cases()} == set()
    assert links.TOPIC_PAGES.keys() - {topic for case in zoo.cases() for topic in case.topics} == set()


def test_a_link_to_a_page_that_is_gone_is_an_error() -> None:
    assert links.title("generated/gallery/torch_onnx/cond") == "How do I export an if on a tensor's value with torch.cond?"
    with pytest.raises(FileNotFoundError, match="torch_onnx/gone"):
        links.title("generated/gallery/torch_onnx/gone")


def test_every_outcome_has_a_sign_and_is_counted_once() -> None:
    counted = [outcome for kind, outcomes in counts.kinds().items() for outcome in outcomes if kind not in counts.BESIDE]
    assert counted == list(counts.OUTCOMES)
    assert len({outcome.sign for outcome in counted}) == len(counted)
    words = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/outcomes.md").read_text(encoding="utf-8").partition("\n## Silent")[0], re.MULTILINE)
    assert set(counted) == set(re.findall(r"`(\w+)`", " ".join(words)))


def test_the_page_includes_every_part() -> None:
    text = "".join((ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("support", "outcomes"))
    parts = page.parts(sweep_of(*RECORDS), cases("mlp"))
    included = [name for name in parts if name.startswith("parts/")]
    assert re.findall(r":file: \.\./generated/(\S+)", text) == included
    for name in included:
        assert Rows(parts[name]).open == [], "every element is closed"
    loaded = re.search(r'data-texts="\.\./_static/(.*?)\?', parts["parts/matrix-table.html"]).group(1)
    assert f"static/{loaded}" in parts


def test_the_exporters_of_torch_and_ours_ran_every_case() -> None:
    text = " ".join((ROOT / "docs/support.md").read_text(encoding="utf-8").split())
    both = {mode: sum(case.moves or mode == "static" for case in zoo.cases()) for mode in ("static", "dynamic")}
    four = "`torch.export`, `to_onnx`, `torch.onnx.export` and the legacy exporter (`torchscript`)"
    assert f"| {four} | {both['static']} cases | {both['dynamic']} cases |" in text
    every = {(case.name, mode) for case in zoo.cases() for mode in ("static", "dynamic") if case.moves or mode == "static"}
    for name in ("torch.export", "to_onnx", "dynamo", "torchscript"):
        assert ran_by(name) == every
    for name in ("openvino", "executorch", "aoti", "transformers"):
        assert ran_by(name) < every


def ran_by(exporter: str) -> set[tuple[str, str]]:
    """The cases that an exporter has an expected outcome of, with the mode."""
    return {(case, mode) for case, name, mode in from_csv(EXPECTED.read_text()) if name == exporter}


def test_a_case_links_to_the_pages_about_it() -> None:
    found = links.links_of(zoo.get("branch_on_value"))
    assert ("How do I export an if on a tensor's value with torch.cond?", "../generated/gallery/torch_onnx/cond.html") in found


def test_the_page_says_whose_exporter_to_onnx_is() -> None:
    made = page.parts(sweep_of(*RECORDS), cases("mlp"))
    for name in ("parts/matrix-totals.html", "parts/matrix-table.html"):
        assert "<code>to_onnx</code> is this site’s own exporter" in made[name]


def test_a_cell_links_to_the_page_of_a_known_error() -> None:
    said = "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1))."
    record = Record("mlp", "dynamo", "static", Outcome.CAPTURE, error=said)
    made = page.parts(sweep_of(record), cases("mlp"))[f"static/{page.DATA}"]
    known = ["A known error: cause and workarounds", "../generated/errors/branch_on_value.html"]
    assert unpacked(made)["runs"]["mlp/dynamo/static"]["known"] == known


def unpacked(script: str) -> Any:
    """What the page's own script makes of the one that it loads."""
    return json.loads(zlib.decompress(b64decode(re.fullmatch(r'window\.matrixPacked = "([\w+/=]+)";\n', script)[1])))
