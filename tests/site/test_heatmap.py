"""The heatmap of silently wrong exports: its numbers, counted a second time from the lines of the stored sweep, and its links."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import support_matrix
from support_matrix import heatmap
from swept import RECORDS, Rows, cases, sweep_of

from content import zoo
from exportlab.diagnostics import any_names_cause
from exportlab.outcomes import Outcome
from exportlab.sweep.page.counts import Sweep, choices
from exportlab.sweep.records import Record

ROOT = Path(__file__).parents[2]
CLOSED = {"integers zero", "integers at their least", "masks all false"}  # values at which a mask hides everything


def is_silent(line: Mapping[str, Any]) -> bool:
    """Whether a line is wrong or frozen, other than by values that hide everything, and its messages don't name the cause."""
    values = {c["inputs"].split(": ")[0] if c["check"] == "other values" else "" for c in line.get("failed", ())}
    hidden = bool(values) and values <= CLOSED
    return line["outcome"] in ("wrong", "frozen") and not hidden and not any_names_cause(line.get("said", ()))


@cache
def counted() -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Silently wrong and tested cases by family and exporter. A case is silently wrong if it was in one round."""
    rounds: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for line in map(json.loads, (ROOT / "docs/data/matrix.jsonl").read_text(encoding="utf-8").splitlines()):
        if line.get("mode") == "dynamic":
            rounds[line["case"], line["exporter"]].append(is_silent(line))
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "content/zoo").glob("*.py")}
    families = {name: family for family, text in texts.items() for name in re.findall(r"^def (\w+)", text, re.MULTILINE)}
    tested = Counter((families[case], exporter) for case, exporter in rounds)
    return Counter((families[case], exporter) for (case, exporter), seen in rounds.items() if any(seen)), tested


@pytest.fixture(scope="module")
def drawn() -> heatmap.Heatmap:
    return heatmap.build_heatmap(Sweep.read(ROOT / "docs/data/matrix.jsonl").runs, zoo.cases())


def test_a_cell_counts_what_the_stored_lines_hold(drawn: heatmap.Heatmap) -> None:
    silent, tested = counted()
    cells = {(family, name): c for family, row in drawn.families.items() for name, c in zip(drawn.exporters, row, strict=True)}
    assert {where: (c.silent, c.total) for where, c in cells.items() if c.total} == {
        where: (silent[where], tested[where]) for where in tested
    }
    assert drawn.total == heatmap.Cell(silent.total(), tested.total())
    assert drawn.totals[drawn.exporters.index("dynamo")].total == 489


def test_the_families_with_the_highest_share_come_first(drawn: heatmap.Heatmap) -> None:
    shares = [cell.share for cell in drawn.margins.values()]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0 == shares[-1]


def test_a_number_links_to_its_test_cases_in_the_matrix(drawn: heatmap.Heatmap) -> None:
    page = support_matrix.render_heatmap(Sweep.read(ROOT / "docs/data/matrix.jsonl"), zoo.cases())
    silent, _ = counted()
    links = re.findall(r'href="#([^"]+)" aria-label="[^"]*: (\d+) of \d+ silently wrong"', page)
    found = [({key: value[0] for key, value in parse_qs(link.replace("&amp;", "&")).items()}, int(count)) for link, count in links]
    for where, count in found:
        assert where["outcome"] in choices()
        assert where["mode"] == "dynamic"
        wanted = {("family", where.get("family")), ("exporter", where.get("exporter"))} - {("family", None), ("exporter", None)}
        assert count == sum(n for (family, name), n in silent.items() if wanted <= {("family", family), ("exporter", name)})
    assert len(found) == len(+silent) + sum(c.silent > 0 for c in [*drawn.totals, *drawn.margins.values(), drawn.total])


def test_the_page_of_a_small_sweep() -> None:
    page = support_matrix.render_heatmap(sweep_of(*RECORDS), cases("mlp", "branch_on_batch"), "docs/", 1)
    rows = {row[0][1]: [text for _, text in row[1:]] for row in Rows(page).rows}
    assert rows["family"] == ["torch.export", "to_onnx", "torch.onnx.export", "torchscript", "all exporters"]
    assert rows["branches"] == ["not tested", "not tested", "1/1", "0/1", "1/2"], "the legacy exporter warned"
    assert "basics" not in rows, "one family is shown"
    assert rows["all 2 families"] == ["0/1", "0/1", "2/2", "0/2", "33"]
    assert rows["test cases"] == ["1", "1", "2", "2", ""]
    assert 'href="docs/support.html#outcome=silent&amp;family=branches&amp;mode=dynamic&amp;exporter=dynamo"' in page
    assert Rows(page).open == []


def test_a_cell_of_few_cases_has_no_colour_and_a_small_share_has_one() -> None:
    assert (heatmap.Cell(2, 4).red, heatmap.Cell(0, 9).red) == (0, 0)
    assert heatmap.Cell(1, 100).red >= 8
    assert heatmap.Cell(9, 9).red == heatmap.STRONGEST
    assert [heatmap.Cell(*counts).text for counts in ((1, 200), (1, 3), (0, 0), (0, 50), (7, 483))] == ["0.5", "1/3", "", "0", "1"]


@pytest.mark.parametrize("share", [0, 0.3, 0.6, heatmap.STRONGEST / 100])
@pytest.mark.parametrize(("ground", "text"), [("#ffffff", "#000000"), ("#14181e", "#ffffff")])
def test_the_numbers_are_readable(share: float, ground: str, text: str) -> None:
    mixed = [share * red + (1 - share) * other for red, other in zip(channels(Outcome.WRONG.color), channels(ground), strict=True)]
    light, dark = sorted((luminance(mixed), luminance(channels(text))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def channels(color: str) -> list[float]:
    return [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def luminance(color: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_an_exporter_without_a_run_with_dynamic_shapes_is_not_tested() -> None:
    drawn = heatmap.build_heatmap(sweep_of(Record("mlp", "dynamo", "static", Outcome.WRONG), RECORDS[0]).runs, cases("mlp"))
    assert drawn.totals == [heatmap.Cell(0, 1), heatmap.Cell()]
